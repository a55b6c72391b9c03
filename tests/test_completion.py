"""`acp-proxy completion`: what it prints is of all commands and options there are, and what bash makes of it.

Of zsh and fish, and of files, that is in `tests/real`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from acp_proxy.completion import SHELLS
from tests.docs.all_completion import mark
from tests.machine import Machine

BY = "hour day week month session turn model agent project user team kind billing"
# What a user types into bash, up to the tab, and what bash offers.
OFFERED = [
    ("acp-proxy rep", "report"),
    ("acp-proxy report --by ", BY),
    ("acp-proxy --ledger x report --li", "--limit"),
    ("acp-proxy budget gr", "grant grants"),
    ("acp-proxy run --log-level ", "debug info warning error"),
    ("acp-proxy run --config own.", ""),  # and so bash offers files, which knows quotes
    ("acp-proxy report --by=mo", "month model"),
    ("acp-proxy report --by=", BY),
    ("acp-proxy session --ledger sqlite:///x la", "last"),
    ("acp-proxy --ledger=sqlite:///x session --tz Europe/Berlin la", "last"),
    ("acp-proxy budget simulate --since 2026-11-01T09:30:00Z --js", "--json"),
    ("acp-proxy setup z", "zed"),
    ("acp-proxy setup zed --agent ", "claude codex gemini goose opencode qwen"),
    ("acp-proxy report --agent ", ""),
    ("acp-proxy run --budget 5 -- my-ag", "my-agent"),
    ("acp-proxy -- my-ag", "my-agent"),
    ("acp-proxy -- my-agent re", ""),
    ("acp-proxy -- my-agent run --", ""),
]


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_printed_was_made_of_the_commands_and_options_that_there_are(tmp_path: Path, shell: str) -> None:
    assert mark(shell) in Machine(tmp_path).answer("completion", shell), "scripts/build-completion makes it anew"


@pytest.mark.parametrize(("typed", "offered"), OFFERED)
def test_bash_completes_commands_options_values_and_the_agents_command(
    tmp_path: Path, typed: str, offered: str
) -> None:
    (tmp_path / "own.toml").touch()
    (tmp_path / "my-agent").touch(mode=0o755)
    words = re.findall(r"[=:]+|[^ =:]+|(?<= )$", typed)  # as bash takes a line apart
    asked = f"""
        eval "$({shlex.join(["cat", str(Path(__file__).parents[1] / "acp_proxy/completion/acp-proxy.bash")])})"
        PATH=$PWD COMP_LINE={shlex.quote(typed)} COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}
        _acp_proxy && echo "${{COMPREPLY[*]}}"
    """
    done = subprocess.run(["bash", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == offered.split()


def test_a_shell_that_there_is_no_script_for_is_a_mistake(tmp_path: Path) -> None:
    assert Machine(tmp_path).complaint("completion", "csh") == (
        "acp-proxy: completion: expected bash, zsh or fish, not 'csh'"
    )
