"""Where the key for a provider's API comes from: a file, or a variable of the environment. Never a command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from acp_proxy.reconcile.api.listings import Provided
from acp_proxy.system.errors import UsageError, reason_of

_NAMED = re.compile(r"\$\{(?:file:(?P<file>.+)|(?:ENV:)?(?P<variable>[A-Za-z_][A-Za-z0-9_]*))\}")


def key_of(given: str | None, provided: Provided, environ: Mapping[str, str], named: str = "--key") -> str:
    """The key that `${NAME}` or `${file:PATH}` names, else that of the provider's variable. Raises UsageError.

    `named` is what the reference was given by.
    """
    found = _NAMED.fullmatch(given or f"${{{provided.variable}}}")
    if found is None:  # what was given may be the key: it is not repeated
        raise UsageError(f"{named}: expected ${{NAME}} or ${{file:PATH}}, because others may see what stands there")
    if found["file"]:
        return _checked(_read(found["file"], named), found["file"], named)
    name = found["variable"]
    if not environ.get(name):
        if given is None:
            raise UsageError(f"--api: expected the key in {name}, or --key '${{file:PATH}}'")
        raise UsageError(f"{named}: the environment has no {name}")
    return _checked(environ[name], name, named)


def _read(path: str, named: str) -> str:
    try:
        return Path(path).expanduser().read_text()
    except (OSError, ValueError, RuntimeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "not a text file"
        raise UsageError(f"{named}: {path}: expected a file with the key: {reason}") from error


def _checked(text: str, where: str, named: str) -> str:
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"{named}: {where}: expected one key on one line")
    return key
