"""`acp-proxy metrics`: one scrape, and the file of it for node_exporter's textfile collector."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path

from acp_proxy.command_line import UsageError
from acp_proxy.config import Config
from acp_proxy.configured import catalog_of
from acp_proxy.ledger import open_ledger
from acp_proxy.metrics import Exporter

_MODE = 0o644  # node_exporter is another user


def scraped(config: Config) -> bytes:
    """Raises LedgerError: a file that is not written anew is seen to be old, one without counters is not.

    Of this process, which is over then, there is nothing: node_exporter refuses what it has by the same name itself.
    """
    with closing(open_ledger(config.ledger.url)) as ledger:
        return Exporter(config, catalog_of(config), process=False).scrape(ledger)


def write(path: Path, text: bytes) -> None:
    """All of it or nothing, also for whoever reads at this moment or after a crash. Raises UsageError."""
    if not path.name:
        raise UsageError("--textfile: expected the path of a file")
    # The collector reads what ends with .prom. Not by the process's id: in a container that is the same each time, and
    # what one left that was killed would be in the way for ever.
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}.new")
    try:
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


def _cannot(path: Path, error: OSError) -> UsageError:
    return UsageError(f"--textfile {path}: {(error.strerror or str(error)).lower()}")
