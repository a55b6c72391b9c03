"""`acp-proxy completion`: what it prints is of all commands and options there are, and what bash makes of it.

Of zsh and fish that is in `tests/real`.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from acp_proxy.completion import SHELLS
from tests.docs.all_completion import mark
from tests.machine import Machine

BY = "day week month session turn model agent project user team kind"
# What a user types into bash, up to the tab, and what bash offers.
OFFERED = [
    ("acp-proxy rep", "report"),
    ("acp-proxy report --by ", BY),
    ("acp-proxy --ledger x report --li", "--limit"),
    ("acp-proxy budget gr", "grant grants"),
    ("acp-proxy run --log-level ", "debug info warning error"),
    ("acp-proxy run --config own.", "own.toml"),
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
def test_bash_completes_commands_options_values_files_and_the_agents_command(
    tmp_path: Path, typed: str, offered: str
) -> None:
    (tmp_path / "own.toml").touch()
    (tmp_path / "my-agent").touch(mode=0o755)
    words = typed.split(" ")
    asked = f"""
        eval "$({shlex.join(["cat", str(Path(__file__).parents[1] / "acp_proxy/completion/acp-proxy.bash")])})"
        PATH=$PWD COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}
        _acp_proxy && echo "${{COMPREPLY[*]}}"
    """
    done = subprocess.run(["bash", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == offered.split()


def test_a_shell_that_there_is_no_script_for_is_a_mistake(tmp_path: Path) -> None:
    assert Machine(tmp_path).complaint("completion", "csh") == (
        "acp-proxy: completion: expected bash, zsh or fish, not 'csh'"
    )
