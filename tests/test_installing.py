"""Each way of docs/install.md to install acp-proxy for good, from a clone, in an empty home and a bare environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from acp_proxy import __version__
from tests.stranger import ROOT, bare, copy_of_the_repository

SECONDS = 300
# They take longest of all, so that they must not be the last that begin: groups come before single tests.
pytestmark = pytest.mark.xdist_group("installing")
PROGRAMS = Path(sys.executable).parent  # where the dependency group `dev` puts uv and pipx


def ways() -> dict[str, str]:
    """The commands of the first block, by the program that each begins with. The last one goes over several lines."""
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    block = page.partition("```sh\n")[2].partition("```")[0]
    commands = [command.replace("\0", "\n") for command in re.sub(r"&&\n", "&&\0", block).splitlines()]
    return {command.split()[0]: command for command in commands}


def test_there_are_three_ways() -> None:
    assert list(ways()) == ["pipx", "uv", "python3"]


@pytest.mark.parametrize("program", ways())
def test_a_way_of_the_documentation_leaves_a_command_that_works_without_the_clone(tmp_path: Path, program: str) -> None:
    clone = copy_of_the_repository(tmp_path / "clone")
    home = tmp_path / "home"
    environ = bare(home) | packages_that_are_here()
    found = tmp_path / "bin"
    found.mkdir()
    if program == "python3":
        put_python(found / program)
    else:
        (found / program).symlink_to(PROGRAMS / program)
    done = subprocess.run(
        ["sh", "-euc", ways()[program]],
        cwd=clone,
        env=environ | {"PATH": f"{found}:{environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    clone.rename(tmp_path / "elsewhere")
    assert answer(home, "--version") == f"acp-proxy {__version__}\n"
    assert "ok   ledger" in answer(home, "doctor")
    assert "--port" in answer(home, "serve", "--help")


def put_python(place: Path) -> None:
    """The Python of these tests, which is new enough: `python3` of the machine may be an older one."""
    python = Path(sys.base_prefix) / f"bin/python3.{sys.version_info.minor}"
    if subprocess.run([python, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("not installed: python3-venv")  # as the page says
    place.write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
    place.chmod(0o755)


def answer(home: Path, *words: str) -> str:
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    command = [str(home / ".local/bin/acp-proxy"), *words]
    done = subprocess.run(command, env=environ, cwd=home, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def packages_that_are_here() -> dict[str, str]:
    """What has been downloaded is not downloaded anew, and uv finds packages where pip does, as in scripts/venv."""
    environ = {"PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_SYSTEM_CERTS": "1"}
    for name, program in {"PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv"}.items():
        done = subprocess.run([PROGRAMS / program, "cache", "dir"], capture_output=True, text=True, check=False)
        if done.returncode == 0:  # else it has none
            environ[name] = done.stdout.strip()
    if index := os.environ.get("PIP_INDEX_URL"):
        environ["UV_DEFAULT_INDEX"] = index
    return environ
