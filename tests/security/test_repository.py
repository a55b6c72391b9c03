"""A repository that somebody else wrote: to work in it runs none of its code, and reads no settings from it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.house import Home

INSTALLED = str(Path(sys.executable).parent / "acp-proxy")
MODULES = ("acp_proxy", "structlog", "rich", "uvloop", "msgspec", "orjson", "sqlite3", "sitecustomize", "usercustomize")
SETTINGS = (
    "config.toml",
    "acp-proxy.toml",
    ".acp-proxy.toml",
    ".acp-proxy/config.toml",
    "acp-proxy/config.toml",
    ".env",
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Every module, hook and setting in it would leave `ran` behind, or another ledger."""
    place = tmp_path / "evil\x1b]0;owned\x07"
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')"
    files = {f"{name}.py": trap for name in MODULES}
    files |= dict.fromkeys(SETTINGS, f'[ledger]\nurl = "sqlite:///{tmp_path}/ran"\n')
    run = "touch ../ran"  # Git runs all of these in the repository
    files[".git/HEAD"] = "ref: refs/heads/main\n"
    files[".git/config"] = (
        f'[core]\n\tfsmonitor = "{run}"\n\tsshCommand = "{run}"\n[remote "origin"]\n\turl = "ext::{run}"\n'
    )
    files[".git/hooks/post-checkout"] = f"#!/bin/sh\n{run}\n"
    (place / ".git/objects").mkdir(parents=True)  # else Git does not take it for a repository
    (place / ".git/refs").mkdir()
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    return place


@pytest.mark.parametrize("command", ["report", "status", "doctor", "budget list", "metrics", "run"])
def test_work_in_a_hostile_repository_runs_nothing_of_it(tmp_path: Path, repository: Path, command: str) -> None:
    home = Home(tmp_path / "home")
    home.path.mkdir()
    words, said = command.split(), ""
    if command == "run":
        words += ["--", sys.executable, "-I", "-m", "acp_proxy.demo_agent"]
        cwd = json.dumps(str(repository))
        prompt = '{"sessionId":"demo-session","prompt":[{"type":"text","text":"x"}]}'
        said = (
            '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
            f'{{"jsonrpc":"2.0","id":1,"method":"session/new","params":{{"cwd":{cwd},"mcpServers":[]}}}}\n'
            f'{{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{prompt}}}\n'
        )
    done = subprocess.run(
        [INSTALLED, *words], cwd=repository, env=home.environ, input=said, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()
    writes = command in ("doctor", "metrics", "run")  # who only looks makes no ledger
    assert (home.path / ".local/state/acp-proxy/ledger.db").exists() == writes


@pytest.mark.parametrize(
    "command", [[sys.executable, "-c", "import structlog"], ["git", "status"]], ids=["python", "git"]
)
def test_the_trap_would_have_worked(tmp_path: Path, repository: Path, command: list[str]) -> None:
    subprocess.run(command, cwd=repository, check=True, timeout=60, capture_output=True)
    assert (tmp_path / "ran").exists()
