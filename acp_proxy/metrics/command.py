"""`acp-proxy metrics`: one scrape, and the file of it for node_exporter's textfile collector."""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from glob import escape
from pathlib import Path

from acp_proxy.config import Config
from acp_proxy.config.applied import catalog_of
from acp_proxy.ledger import LedgerError, Tell, open_or_make
from acp_proxy.metrics import Exporter
from acp_proxy.metrics.exposition import counters_of
from acp_proxy.system.errors import UsageError, reason_of

_MODE = 0o644  # node_exporter is another user
_LEFT = 60.0  # seconds after which a file that is not finished never will be


def scraped(config: Config, tell: Tell | None) -> bytes:
    """Raises LedgerError. `tell` is told where there was no ledger yet.

    Of this process, which is over then, there is nothing: node_exporter refuses what it has by the same name itself.
    """
    with closing(open_or_make(config.ledger.url, tell)) as ledger:
        return _exporter(config).scrape(ledger)


def into_file(path: Path, config: Config, tell: Tell | None) -> None:
    """Raises UsageError, and LedgerError once the file says that the ledger does not answer, with its counters."""
    try:
        text = scraped(config, tell)
    except LedgerError:
        own = _exporter(config).without_ledger()
        write(path, counters_of(_read(path), but=own) + own)
        raise
    write(path, text)


def write(path: Path, text: bytes) -> None:
    """All of it or nothing, also for a reader at this moment or after a crash. Raises UsageError."""
    if not path.name:
        raise UsageError("--textfile: expected the path of a file")
    # The collector reads what ends with .prom. Not by the process's id: in a container that is the same each time, and
    # what one left that was killed would be in the way for ever.
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}.new")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # root would put a file in the place of /dev/null
            raise UsageError(f"--textfile {path}: is not a file")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    except OSError as error:
        raise _cannot(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _MODE)  # whatever the umask says
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        unfinished.replace(path)
    except OSError as error:
        raise _cannot(path, error) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()
    _clear(path)


def _clear(path: Path) -> None:
    """Remove what others left that were killed while they wrote."""
    for left in path.parent.glob(f".{escape(path.name)}.*.new"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT:
                left.unlink()


def _exporter(config: Config) -> Exporter:
    return Exporter(config, catalog_of(config), process=False)


def _read(path: Path) -> bytes:
    """The text of the previous file; empty if there is none, or it cannot be read."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def _cannot(path: Path, error: OSError) -> UsageError:
    return UsageError(f"--textfile {path}: {reason_of(error)}")
