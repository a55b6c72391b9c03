"""Who can read what is written: every file is its owner's alone, also where the umask would let everybody in."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.machine import COMMAND
from tests.replay import play
from tests.serve.house import Home

RECORDING = Path(__file__).parents[1] / "transcripts/codex-acp-2.6.0/basic.jsonl"
OPEN_TO_ALL = ["sh", "-c", 'umask 000; exec "$@"', "sh"]
CONFIG = """
[[budget]]
name = "cap"
window = "day"
limit = { amount = "100", currency = "USD" }
[log]
file = "HOME/logs/of/proxy.log"
level = "debug"
"""
# What lies in the home directory while the agent still runs, for the journal is gone afterwards.
AGENT_THAT_LOOKS = ["sh", "-c", '"$@"; find "$HOME" -printf "%m %y %P\\n" >"$SEEN"', "sh"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.path.mkdir(0o755)
    home.configure(CONFIG.replace("HOME", str(home.path)))
    (home.path / ".config").chmod(0o700)
    (home.path / ".config/acp-proxy").chmod(0o700)
    (home.path / ".config/acp-proxy/config.toml").chmod(0o600)
    return home


def readable_by_others(listing: str) -> list[str]:
    """Of lines `MODE TYPE PATH`; the home directory itself is not ours."""
    entries = [line.split(" ", 2) for line in listing.splitlines()]
    return [path for mode, _, path in entries if path and int(mode, 8) & 0o077]


def listing(path: Path) -> str:
    found = sorted(path.rglob("*"))
    return "".join(f"{each.stat().st_mode & 0o777:o} f {each.relative_to(path)}\n" for each in found)


def test_what_a_running_proxy_writes_is_private_whatever_the_umask(home: Home, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    environment = {**home.environ, "SEEN": str(seen)}
    relay = [*OPEN_TO_ALL, *COMMAND, "run", "--", *AGENT_THAT_LOOKS]
    assert play(relay, RECORDING, environment=environment).status == 0
    while_it_ran = seen.read_text()
    assert ".journal" in while_it_ran
    assert "ledger.db-wal" in while_it_ran
    assert readable_by_others(while_it_ran) == []
    assert readable_by_others(listing(home.path)) == []


def test_what_commands_write_is_private_whatever_the_umask(home: Home) -> None:
    for arguments in (
        ("report",),
        ("status",),
        ("budget", "grant", "cap", "--amount", "1", "--for", "1h", "--reason", "a release"),
        ("doctor", "--rebuild"),
    ):
        done = subprocess.run(
            [*OPEN_TO_ALL, *COMMAND, *arguments], env=home.environ, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
    assert (home.path / ".local/state/acp-proxy/status").is_dir()
    assert readable_by_others(listing(home.path)) == []


def test_a_log_is_private_and_so_are_the_directories_that_are_made_for_it(tmp_path: Path) -> None:
    code = "from acp_proxy.log import Log; from pathlib import Path; Log('debug', Path('a/b/proxy.log'))('debug', 'x')"
    subprocess.run([*OPEN_TO_ALL, sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "a/b/proxy.log").read_text().count("\n") == 1
    assert readable_by_others(listing(tmp_path)) == []


def test_a_damaged_ledger_that_is_set_aside_stays_private(home: Home) -> None:
    file = home.path / ".local/state/acp-proxy/ledger.db"
    home.run("doctor")
    file.write_bytes(b"not a database" * 100)
    subprocess.run([*OPEN_TO_ALL, *COMMAND, "report"], env=home.environ, capture_output=True, check=True, timeout=60)
    assert list(file.parent.glob("*.corrupt-*"))
    assert readable_by_others(listing(home.path)) == []


def test_where_others_may_look_they_find_only_what_metrics_say(home: Home, tmp_path: Path) -> None:
    """node_exporter is another user: its file is the one exception, and is where the user wants it."""
    file = tmp_path / "out.prom"
    assert home.run("metrics", "--textfile", str(file)).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o644
    assert readable_by_others(listing(home.path)) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine_can_read_nothing() -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Home(Path(directory))
        home.path.chmod(0o755)
        assert home.run("doctor").returncode == 0
        assert home.run("status").returncode == 0
        files = [path for path in home.path.rglob("*") if path.is_file()]
        assert len(files) > 1
        assert [path for path in files if is_readable_by_nobody(path)] == []
        public = home.path / "public"
        public.write_text("of the house")
        public.chmod(0o644)
        assert is_readable_by_nobody(public)


def is_readable_by_nobody(path: Path) -> bool:
    reader = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", str(path)]
    return not subprocess.run(reader, capture_output=True, timeout=60).returncode
