"""The first commands of README.md, as somebody runs them in a fresh clone with an empty home and a bare environment."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.stranger import ROOT, bare, copy_of_the_repository

README = (ROOT / "README.md").read_text(encoding="utf-8")
SECONDS = 300


def first_commands() -> list[str]:
    block = README.partition("```sh\n")[2].partition("```")[0]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return copy_of_the_repository(tmp_path / "clone")


@dataclass
class Stranger:
    """Who has typed the first command in a fresh clone."""

    clone: Path
    home: Path
    first: str  # what it said first
    was_ready: bool  # when it said that
    status: int
    out: str
    err: str  # what it said after that


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    directory = tmp_path_factory.mktemp("stranger")
    clone, home = copy_of_the_repository(directory / "clone"), directory / "home"
    with subprocess.Popen(
        [clone / first_commands()[0]], env=bare(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stderr is not None
        first = demo.stderr.readline()
        ready = (clone / ".venv/bin/acp-proxy").exists()
        out, err = demo.communicate(timeout=SECONDS)
        return Stranger(clone, home, first, ready, demo.returncode, out, err)


def test_the_first_block_has_one_command_to_try_it_and_one_to_test_it() -> None:
    assert first_commands() == ["scripts/demo", "scripts/test"]


def test_ci_runs_the_readmes_test_command() -> None:
    commands = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert any(re.match(rf"{first_commands()[1]}( \||$)", line) for line in commands)


@pytest.mark.xdist_group("stranger")
def test_the_first_command_shows_a_metered_session_in_a_bare_environment(stranger: Stranger) -> None:
    assert stranger.first.startswith("acp-proxy: making .venv")
    assert not stranger.was_ready  # it says what it does before it does it
    assert "installing acp-proxy" in stranger.err
    assert stranger.status == 0, stranger.err
    assert "$ acp-proxy report --by turn" in stranger.out
    assert "total" in stranger.out
    assert (stranger.clone / ".venv/bin/acp-proxy").exists()
    assert list(stranger.home.rglob("*acp-proxy*")) == []  # nothing is left in the home directory


@pytest.mark.xdist_group("stranger")
def test_the_second_command_passes_tests_in_the_same_clone(stranger: Stranger) -> None:
    """In the `.venv` that the first has made, to which it adds what tests need."""
    done = subprocess.run(
        [stranger.clone / first_commands()[1], "tests/core/test_money.py"],
        env=bare(stranger.home),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.startswith("acp-proxy: installing acp-proxy and the packages for: dev deploy")


def python_without(directory: Path, *modules: str) -> None:
    """Write Pythons, by each name that scripts/venv tries, that cannot import these modules with `-c`."""
    hides = f"import sys; sys.modules.update(dict.fromkeys({modules!r}))"
    directory.mkdir()
    for version in ("", ".14", ".13", ".12", ".11"):
        python = directory / f"python3{version}"
        python.write_text(
            f'#!/bin/sh\n[ "$1" = -c ] && exec "{sys.executable}" -c "{hides}\n$2"\nexec "{sys.executable}" "$@"\n'
        )
        python.chmod(0o755)


@pytest.mark.needs("apt-get")
def test_a_debian_python_without_pip_gets_the_pip_of_its_distribution(clone: Path, tmp_path: Path) -> None:
    python_without(tmp_path / "bin", "ensurepip", "pip")
    done = subprocess.run(
        [clone / first_commands()[0]],
        env=bare(tmp_path / "home", path=f"{tmp_path / 'bin'}:/usr/bin:/bin"),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "acp-proxy: fetching Debian's pip into .venv\n" in done.stderr
    assert "$ acp-proxy report --by turn" in done.stdout
    assert not (clone / ".venv/fetched").exists()


def test_a_python_that_cannot_make_an_environment_says_what_to_install(clone: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    python_without(programs, "ensurepip", "venv", "pip")
    for name in ("bash", "env", "head", "dirname", "cat"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run(
        [clone / first_commands()[0]],
        env=bare(tmp_path / "home", path=str(programs)),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].endswith("On Debian or Ubuntu: apt install python3-venv")
