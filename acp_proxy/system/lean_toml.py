"""`tomllib` without the patterns of numbers, dates and templates that it would make at once: 3 ms of each command.

A file that has a number or a date gets that pattern when it is read.
"""

from __future__ import annotations

import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = "0123456789"


class _Pattern:
    """A pattern that is made when it is used."""

    def __init__(self, *of: Any, **flags: Any) -> None:
        self._of = of
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        return getattr(re.compile(*self._of, **self._flags), name)


def toml() -> ModuleType:
    """The module `tomllib`."""
    if "tomllib" not in sys.modules:
        patterns = SimpleNamespace(**vars(re) | {"compile": _Pattern})
        letters = SimpleNamespace(ascii_letters=_LETTERS, digits=_DIGITS, hexdigits=f"{_DIGITS}abcdefABCDEF")
        before = {name: sys.modules.get(name) for name in ("re", "string")}
        stand_ins: dict[str, Any] = {"re": patterns, "string": before["string"] or letters}
        sys.modules.update(stand_ins)
        try:
            import tomllib
        except (ImportError, AttributeError):  # another version asks more of a module than its stand-in gives
            for name in [name for name in sys.modules if name.partition(".")[0] == "tomllib"]:
                del sys.modules[name]
        finally:
            for name, module in before.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module
    import tomllib

    return tomllib
