"""`acp-proxy metrics` as it is installed: stdout, the file for node_exporter, and mistakes in one line."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from acp_proxy.config import Config
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.metrics.command import write
from harness.rows import line, row
from tests.metrics.scrapes import Scraped


def metrics(config: Config, home: Path, *options: str, umask: int = 0o077) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "acp_proxy", "metrics", "--ledger", config.ledger.url, *options]
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "USER": "alice"}
    return subprocess.run(command, env=environ, capture_output=True, check=False, timeout=60, umask=umask)


def test_without_an_option_everything_goes_to_stdout(ledger: BudgetLedger, config: Config, tmp_path: Path) -> None:
    ledger.append([row(line("opus", "0.045989"))])
    done = metrics(config, tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert str(Scraped(done.stdout).total("acp_proxy_cost_total")) == "0.045989"


def test_the_file_is_replaced_whole_and_everybody_may_read_it(
    ledger: BudgetLedger, config: Config, tmp_path: Path
) -> None:
    directory = tmp_path / "collector"
    directory.mkdir()
    file = directory / "acp.prom"
    file.write_text("old")
    with file.open() as reader:  # who reads at that moment goes on with what was there
        assert metrics(config, tmp_path, "--textfile", str(file)).returncode == 0
        assert reader.read() == "old"
    assert "acp_proxy_ledger_up" in Scraped(file.read_bytes())
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [found.name for found in directory.iterdir()] == ["acp.prom"]


@pytest.mark.usefixtures("ledger")
def test_mistakes_are_one_line_that_names_the_file_and_leave_nothing(config: Config, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")  # as /dev/stdout is one
    for path, problem in (
        ("missing/acp.prom", "no such file or directory"),
        ("directory", "is a directory"),
        ("pipe", "is not a file"),
        ("link", "is not a file"),
        ("x" * 300, "file name too long"),
    ):
        done = metrics(config, tmp_path, "--textfile", str(tmp_path / path))
        assert done.returncode == 2
        assert done.stderr.decode() == f"acp-proxy: --textfile {tmp_path / path}: {problem}\n"
    assert not [found.name for found in tmp_path.iterdir() if found.name.endswith(".new")]
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()


def test_what_a_killed_process_left_is_not_in_the_way_and_gone_later(tmp_path: Path) -> None:
    """Also one of the same id: in a container it mostly is the same one."""
    file, left, others = (tmp_path / name for name in ("[acp].prom", f".[acp].prom.{os.getpid()}.new", ".a.prom.1.new"))
    for unfinished in (left, others):
        unfinished.write_text("half of")
    write(file, b"new")
    assert file.read_bytes() == b"new"
    assert left.exists()  # it may be written just now
    for unfinished in (left, others):
        os.utime(unfinished, (0, 0))
    write(file, b"newer")
    assert sorted(found.name for found in tmp_path.iterdir()) == [others.name, file.name]


def test_of_a_ledger_that_cannot_be_read_the_file_says_so_and_keeps_what_only_grows(
    ledger: BudgetLedger, config: Config, tmp_path: Path
) -> None:
    ledger.append([row(line("opus", "0.045989"))])
    file = tmp_path / "acp.prom"
    into = ("--textfile", str(file))
    assert metrics(config, tmp_path, *into).returncode == 0
    before = Scraped(file.read_bytes())
    for _ in range(2):
        done = metrics(config, tmp_path, "--ledger", "postgresql://127.0.0.1:1/none", *into)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        away = Scraped(file.read_bytes())
        assert before.value("acp_proxy_ledger_up") == 1
        assert away.value("acp_proxy_ledger_up") == 0
        for counter in ("acp_proxy_cost_total", "acp_proxy_turns_total", "acp_proxy_turn_cost_bucket"):
            assert away.samples(counter) == before.samples(counter) != {}
        assert "acp_proxy_ledger_pending_entries" not in away
    assert metrics(config, tmp_path, *into).returncode == 0
    assert Scraped(file.read_bytes()).names == before.names


def test_a_ledger_that_could_never_be_read_is_told_in_the_file_as_well(config: Config, tmp_path: Path) -> None:
    file = tmp_path / "acp.prom"
    done = metrics(config, tmp_path, "--ledger", "postgresql://127.0.0.1:1/none", "--textfile", str(file))
    assert done.returncode == 2
    assert Scraped(file.read_bytes()).value("acp_proxy_ledger_up") == 0
