"""Shells complete the command line with what `acp-proxy completion` prints."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

from acp_proxy.completion import SHELLS, script_of

pytestmark = pytest.mark.needs("zsh", "fish")

SECONDS = 60
TYPED = [
    ("acp-proxy rep", "report"),
    ("acp-proxy report --js", "--json"),
    ("acp-proxy report --by mon", "month"),
    ("acp-proxy run --config own.t", "own.toml"),
    ("acp-proxy setup ze", "zed"),
    ("acp-proxy run -- cat own.t", "own.toml"),
    ("acp-proxy -- my-ag", "my-agent"),
    ("acp-proxy --ledger sqlite:///x session la", "last"),
]
# Up to the tab, and what is added then.
GROWN = [
    ("acp-proxy run --config my\\ dir", "ectory/"),
    ("acp-proxy run --config my\\ directory/in", "ner.toml "),
    ('acp-proxy run --config "my directory/in', 'ner.toml" '),
    ("acp-proxy run --config=own.t", "oml "),
    ("acp-proxy --config=own.toml rep", "ort "),
    ("acp-proxy --ledger=sqlite:///x report --by=mon", "th "),
    ("acp-proxy metrics --textfile=my\\ directory/in", "ner.toml "),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "own.toml").touch()
    (tmp_path / "my directory").mkdir()
    (tmp_path / "my directory/inner.toml").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/my-agent").touch(mode=0o755)
    for shell in SHELLS:
        (tmp_path / f"acp-proxy.{shell}").write_text(script_of(shell), encoding="utf-8")
    (tmp_path / "_acp-proxy").write_text(script_of("zsh"), encoding="utf-8")
    return tmp_path


def environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": f"{home / 'bin'}:{os.environ['PATH']}", "TERM": "dumb", "LANG": "C.UTF-8"}


@pytest.mark.parametrize(("typed", "completed"), TYPED)
def test_fish_completes(home: Path, typed: str, completed: str) -> None:
    assert [value for value, _ in offered_by_fish(home, typed)] == [completed]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("run --config my\\ dir", "my directory/"),
        ("run --config my\\ directory/in", "my directory/inner.toml"),
        ("run --config=own.t", "--config=own.toml"),
        ("--config=own.toml rep", "report"),
    ],
)
def test_fish_completes_files_with_spaces_and_behind_an_equals_sign(home: Path, typed: str, offered: str) -> None:
    assert [value for value, _ in offered_by_fish(home, f"acp-proxy {typed}")] == [offered]


@pytest.mark.parametrize("typed", ["setup ", "completion ", "report --by ", "run --log-level "])
def test_fish_does_not_say_all_values_beside_each(home: Path, typed: str) -> None:
    offered = dict(offered_by_fish(home, f"acp-proxy {typed}"))
    assert len(offered) > 1
    assert not [said for said in offered.values() if all(value in said for value in offered)]


@pytest.mark.parametrize(
    "begin",
    [
        "autoload -U compinit; compinit -u; source ./acp-proxy.zsh",
        'autoload -U compinit; compinit -u; eval "$(cat acp-proxy.zsh)"',
        "fpath=($PWD $fpath); autoload -U compinit; compinit -u",
    ],
)
def test_zsh_completes(home: Path, begin: str) -> None:
    grows(home, ["zsh", "-f", "-i"], f"PROMPT=; {begin}")


def test_bash_completes(home: Path) -> None:
    begin = "PS1=; bind 'set enable-bracketed-paste off'; . ./acp-proxy.bash"
    grows(home, ["bash", "--norc", "--noprofile", "-i"], begin)


def grows(home: Path, command: list[str], begin: str) -> None:
    """What is typed into a shell becomes what it should at a tab."""
    typed_and_added = [(typed, f"{completed} ".removeprefix(typed.rpartition(" ")[2])) for typed, completed in TYPED]
    terminal, its = pty.openpty()  # not pty.fork, of which Python 3.15 warns wherever there are threads
    shell = subprocess.Popen(
        command, cwd=home, env=environ(home), stdin=its, stdout=its, stderr=its, start_new_session=True
    )
    os.close(its)
    try:
        os.write(terminal, f"{begin}; printf '%s\\n' rea''dy\n".encode())
        read_until(terminal, "ready\r\n")
        for typed, added in [*typed_and_added, *GROWN]:
            os.write(terminal, f"{typed}\t".encode())
            read_until(terminal, f"{typed}{added}")  # then it waits for more
            os.write(terminal, b"\x15")  # which empties the line
    finally:
        os.close(terminal)
        shell.wait()


def read_until(terminal: int, text: str) -> None:
    """Fails where it is not written to the terminal."""
    seen, end = "", time.monotonic() + SECONDS
    while text not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        assert ready, seen
        seen += os.read(terminal, 65536).decode()


def offered_by_fish(home: Path, typed: str) -> list[tuple[str, str]]:
    """Each value, and what is said of it."""
    asked = f'source acp-proxy.fish; complete -C "{typed}"'
    done = subprocess.run(
        ["fish", "-c", asked], cwd=home, env=environ(home), capture_output=True, text=True, check=True, timeout=SECONDS
    )
    return [(value, said) for value, _, said in (line.partition("\t") for line in done.stdout.splitlines())]
