"""The second try of tests that failed: what it forgives, and what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.again import MOST

ROOT = Path(__file__).parents[1]
FAILS = "def test_it():\n    assert 1 == 2\n"
PASSES = "def test_it():\n    pass\n"
FAILS_ONCE = """
import pathlib, pytest
@pytest.mark.parametrize("name", ["a@b", "c d"])
@pytest.mark.xdist_group("group")
def test_it(name):
    made = pathlib.Path(__file__).with_name(name)
    if not made.exists():
        made.touch()
        assert name == "the first failure"
"""
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadgroup")], ids=["alone", "with workers"])


def tried(directory: Path, *options: str, **files: str) -> tuple[int, str]:
    """Exit status and output of a run of these test files."""
    for name, text in files.items():
        (directory / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "tests.again", "-q", "-p", "no:cacheprovider", *options]
    environ = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": ""}
    done = subprocess.run(command, cwd=directory, env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def flaky(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("FLAKY: ")]


@WORKERS
def test_what_fails_once_is_named_and_forgiven_and_what_it_said_stays(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, said = tried(tmp_path, *workers, once=FAILS_ONCE, other=PASSES)
    assert status == 0, said
    assert flaky(said) == [
        f"FLAKY: test_once.py::test_it[{name}] failed, and passed only at the second try" for name in ("a@b", "c d")
    ]
    assert "assert 'c d' == 'the first failure'" in said


def test_what_fails_twice_is_a_failure_whatever_else_passes_then(tmp_path: Path) -> None:
    status, said = tried(tmp_path, once=FAILS_ONCE, twice=FAILS)
    assert (status, flaky(said)) == (1, [])
    assert said.count("assert 1 == 2") >= 2


def test_nothing_is_said_where_all_pass(tmp_path: Path) -> None:
    status, said = tried(tmp_path, other=PASSES)
    assert (status, flaky(said)) == (0, [])
    assert "Once more" not in said


def test_more_than_a_few_failures_are_no_chance(tmp_path: Path) -> None:
    names = [str(number) for number in range(MOST + 1)]
    status, said = tried(tmp_path, once=FAILS_ONCE.replace('["a@b", "c d"]', repr(names)))
    assert (status, "Once more" in said) == (1, False)


@WORKERS
def test_where_a_file_cannot_be_imported_nothing_is_tried_again(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, said = tried(tmp_path, *workers, broken="import no_such_module\n", once=FAILS_ONCE)
    assert (status > 0, "Once more" in said) == (True, False), said


def test_a_test_of_many_cases_is_tried_again_as_a_whole(tmp_path: Path) -> None:
    text = FAILS_ONCE.replace("@pytest.mark.parametrize", "from tests.cases import each_of\n#").replace(
        "def test_it", "@each_of(['a', 'b'])\ndef test_it"
    )
    status, said = tried(tmp_path, once=text)
    assert (status, flaky(said)) == (0, ["FLAKY: test_once.py::test_it failed, and passed only at the second try"])


def test_a_worker_that_died_is_not_forgiven(tmp_path: Path) -> None:
    dies = "import os, pathlib\ndef test_it():\n    os._exit(3)\n"
    status, said = tried(tmp_path, "-n", "1", once=FAILS_ONCE, dies=dies)
    assert (status, "Once more" in said) == (1, False), said
    assert "crashed" in said
