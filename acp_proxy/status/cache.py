"""A cache of answers of `acp-proxy status`, valid until one of their inputs changes.

A status bar asks every few seconds, so this imports only `os`, `sys`, `time` and `_blake2`: a cached answer takes
little longer than Python's own start. An invalid cached answer is computed again.
"""

from __future__ import annotations

import os
import sys
import time
from _blake2 import blake2b  # `hashlib` loads OpenSSL, for 3 ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_VARIABLES = ("HOME", "LOGNAME", "TZ", "USER", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")
_END = "\0"  # between the parts of a kept answer; no path and no answer has one
_WHOLE = "whole"  # what a kept answer ends with
_MOST = 500  # files; each directory that a prompt is shown in has one of its own


def say(answer: str) -> str | None:
    """Write it to stdout. Where that cannot be done, why, in one line for the user."""
    if not sys.stdout:  # fd 1 came closed
        return None
    try:
        try:
            sys.stdout.write(answer)
        except UnicodeEncodeError:  # nothing was written yet
            from acp_proxy.text.charset import make_do

            make_do(sys.stdout)
            sys.stdout.write(answer)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is still to be flushed
        if not isinstance(error, BrokenPipeError):  # else the reader is gone
            return f"the answer cannot be written: {(error.strerror or str(error)).lower()}"
    return None


def kept(argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The answer to the same question, None where there is none or it may be another by now."""
    asked = _question(argv, environ)
    try:
        with open(place(asked, environ), encoding="utf-8", errors="surrogateescape") as file:
            question, until, answer, *watched, end = file.read().split(_END)
        marks = list(zip(watched[::2], watched[1::2], strict=True))
    except (OSError, ValueError):
        return None
    if question != asked or end != _WHOLE or not _still(until):
        return None
    return answer if all(_mark(path) == mark for path, mark in marks) else None


def marked(watched: Iterable[str]) -> list[tuple[str, str]]:
    """Files, whether there or not, as they are now: before an answer is made, for one may change."""
    return [(path, _mark(path)) for path in watched]


def keep(
    argv: Sequence[str], environ: Mapping[str, str], answer: str, watched: Iterable[tuple[str, str]], until: int
) -> None:
    """Keep an answer until a time (Unix ns), or until a file is not as it was `marked`."""
    asked = _question(argv, environ)
    marks = (part for file in watched for part in file)
    write(place(asked, environ), _END.join((asked, str(until), answer, *marks, _WHOLE)))


def write(file: str, text: str) -> None:
    """Write a whole file that only its owner reads; nothing where that fails, for what is kept can be made anew."""
    from pathlib import Path

    from acp_proxy.ledger.places import private_directory

    new = f"{file}.{os.urandom(8).hex()}"  # not by the process's id: in a container that is the same each time
    try:
        private_directory(Path(file).parent)
        _make_room(os.path.dirname(file))
        with open(new, "w", encoding="utf-8", errors="surrogateescape", opener=_private) as kept_in:
            kept_in.write(text)
        os.replace(new, file)
    except OSError:
        return  # a read-only or full disk


def _make_room(directory: str) -> None:
    """Nothing else ever removes an answer; all of them can be made anew."""
    files = os.listdir(directory)
    if len(files) < _MOST:
        return
    from contextlib import suppress

    for name in files:
        with suppress(FileNotFoundError):  # another process may do the same
            os.remove(f"{directory}/{name}")


def _still(until: str) -> bool:
    """Whether a time (Unix ns, as text) is ahead, and not so far that a clock must have been set back."""
    return until.isdecimal() and 0 <= int(until) - time.time_ns() <= 3600 * 10**9


def _question(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """A digest of all that an answer depends on beside files and time: some of it may be a path, or hold a password."""
    names = sorted(name for name in environ if name in _VARIABLES or name.startswith("ACP_PROXY_"))
    parts = (sys.prefix, _version(), _working_directory(), *argv, "", *(f"{name}={environ[name]}" for name in names))
    return _digest(_END.join(parts))


def _version() -> str:
    from acp_proxy import __version__

    return __version__


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def place(of: str, environ: Mapping[str, str], suffix: str = "") -> str:
    """The file that keeps what belongs to a text, such as the answer to a question; its name is a digest of that."""
    home = environ.get("HOME") or os.path.expanduser("~").removeprefix("~")  # as `directories.home`
    state = environ.get("XDG_STATE_HOME", "")
    directory = state if state.startswith("/") else f"{home}/.local/state"
    return f"{directory}/acp-proxy/status/{_digest(of)}{suffix}"


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _mark(path: str) -> str:
    """A mark of a file that changes whenever the file does."""
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
