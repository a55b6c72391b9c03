"""The proxy's own log, where it cannot be written."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acp_proxy.log import Log
from tests.unread import full_pipe


def test_a_log_that_cannot_be_written_goes_to_stderr_and_that_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    log = Log("warning", tmp_path / "file/log")
    for event in ("ledger.unavailable", "journal.full"):
        log("warning", event)
    said, *events = capsys.readouterr().err.splitlines()
    assert said == f"acp-proxy: log {tmp_path}/file/log: cannot be written: not a directory; it goes to stderr"
    assert [line.partition(" event=")[2] for line in events] == ["ledger.unavailable", "journal.full"]


def test_without_a_stderr_nothing_is_logged_and_nothing_goes_to_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a program whose file descriptor 2 came closed."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "stderr", None)
    for file in (None, tmp_path / "file/log"):
        Log("warning", file)("warning", "ledger.unavailable")
    assert capsys.readouterr().out == ""


def test_a_full_stderr_that_nobody_reads_takes_no_line_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with full_pipe() as (reader, full), io.TextIOWrapper(full, write_through=True) as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        log = Log()
        log("warning", "ledger.unavailable")
        assert set(reader.read(1 << 20)) == {0}
        log("warning", "journal.full")
        assert b" event=journal.full" in reader.read(1 << 20)


def test_a_stderr_that_nobody_reads_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes through the relay waits while a line does."""
    with full_pipe() as (_, full), io.TextIOWrapper(full, write_through=True) as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        log, began = Log(), time.monotonic()
        for _ in range(100):
            log("warning", "ledger.unavailable")
        assert time.monotonic() - began < 5  # a tenth of a second each would be ten


def test_a_program_whose_stderr_fails_in_any_way_hears_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no memory is left."""

    class Failing(io.StringIO):
        def write(self, text: str) -> int:
            raise MemoryError

    monkeypatch.setattr(sys, "stderr", Failing())
    Log()("warning", "ledger.unavailable")


def test_the_first_line_loads_nothing_that_prints_tracebacks_and_leaves_it_to_be_found() -> None:
    """While it is loaded the relay waits."""
    code = "\n".join(
        (
            "import sys",
            "from acp_proxy.log import Log",
            "Log()('warning', 'ledger.unavailable')",
            "assert 'structlog' in sys.modules",
            "print([name for name in ('rich', 'pygments', 'attr') if name in sys.modules])",
            "import rich",
        )
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr.partition("event=")[2]) == ("[]\n", "ledger.unavailable\n")
