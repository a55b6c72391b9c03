"""The proxy's own log: to stderr or a file, never to stdout, which is the wire. Never content of a session.

structlog is imported for the first event that is written: most runs have none, and it is 3 MB of each proxy's memory.
An update of what is installed may have taken it away by then.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from acp_proxy.system.errors import reason_of

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_UNREAD = 0.1  # seconds that a line waits for a reader of stderr; after one timeout no other line waits


class Log:
    """Called with a level, an event and its fields. A log that cannot be written is dropped, never raised."""

    def __init__(self, level: str = "warning", file: Path | None = None) -> None:
        self._threshold = LEVELS[level]
        self._file = file
        self._stream: TextIO | None = None
        self._logger: Any = None
        self._wait = _UNREAD

    def takes(self, level: str) -> bool:
        """Whether events of a level are written."""
        return LEVELS[level] >= self._threshold

    def __call__(self, level: str, event: str, **fields: Any) -> None:
        if not self.takes(level):
            return
        try:
            if self._stream is None:
                stream = _stream(self._file)
                self._logger = _logger_on(stream)
                self._stream = stream
            takes = takes_a_line(self._stream, self._wait)
            self._wait = _UNREAD if takes else 0
            if takes:
                getattr(self._logger, level)(event, **fields)
        except Exception:  # noqa: S110  stderr closed, disk full, no memory left: the relay goes on
            pass


def takes_a_line(stream: TextIO, within: float) -> bool:
    """Whether a line can be written without waiting longer than so many seconds: not if a full pipe is not read."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLOUT)
    except (OSError, ValueError):  # no descriptor is behind it, as where a program has put something in its place
        return True
    return bool(poll.poll(within * 1000))


def _stream(file: Path | None) -> TextIO:
    """The file, else stderr: what there is to say must not be lost with a path that is misspelt.

    Raises OSError where there is neither.
    """
    if file is None:
        return _stderr()
    from acp_proxy.ledger.places import private_directory

    try:
        private_directory(file.parent)
        file.touch(mode=0o600, exist_ok=True)
        return file.open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        stderr = _stderr()
        stderr.write(f"acp-proxy: log {file}: cannot be written: {reason_of(error)}; it goes to stderr\n")
        return stderr


def _stderr() -> TextIO:
    if sys.stderr is None:  # where fd 2 came closed
        raise OSError("no stderr")
    return sys.stderr


def _logger_on(stream: TextIO) -> Any:
    try:
        return _logger(stream)
    except (ImportError, AttributeError):  # removed or replaced under us; half removed, it still is an empty package
        return _Plain(stream)


class _Plain:
    """Writes the same lines without structlog; it escapes more of them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, level: str) -> Callable[..., None]:
        return partial(self._write, level)

    def _write(self, level: str, event: str, **fields: object) -> None:
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        values = {"timestamp": now, "logger": "acp-proxy", "level": level, "event": event, **fields}
        self._stream.write(" ".join(f"{name}={_quoted(value)}" for name, value in values.items()) + "\n")
        self._stream.flush()


def _quoted(value: object) -> str:
    text = "" if value is None else str(value)
    bare = text.isascii() and text.isprintable() and not any(sign in text for sign in ' "=\\')
    return text if bare else '"' + text.encode("unicode_escape").decode().replace('"', '\\"') + '"'


def _logger(stream: TextIO) -> Any:
    with _hidden("rich"):
        import structlog

    from acp_proxy.text.figures import clean

    def on_one_line(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Names in it come from agents, and stderr may be a terminal."""
        return {name: clean(value) if isinstance(value, str) else value for name, value in event.items()}

    logger = structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=[
            on_one_line,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "logger", "level", "event"]),
        ],
        wrapper_class=structlog.BoundLogger,
    )
    return logger.bind(logger="acp-proxy")


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    """Around an import that takes a package where it is installed, and does without it elsewhere.

    structlog 26.1 takes rich, and with it pygments and attrs, for tracebacks that nobody prints here. That is four
    fifths of the time of its import, in which the relay waits, and 5 of 8 MB.
    """
    if package in sys.modules:
        yield
        return
    modules: dict[str, Any] = sys.modules
    modules[package] = None  # the import system's sign for what is not to be found
    try:
        yield
    finally:
        del modules[package]
