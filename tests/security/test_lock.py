"""requirements.lock is what pyproject.toml asks for, pinned to hashes, and tells nothing of where it was made."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINS = re.findall(
    r"^(\S+)==(\S+)(?: ; ([^\\\n]+))? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", LOCK, re.MULTILINE
)


def asked_for() -> list[Requirement]:
    """By users, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [text for extra in project["optional-dependencies"].values() for text in extra]
    return [Requirement(text) for text in [*project["dependencies"], *extras]]


def test_every_line_is_a_pin_with_hashes_or_a_comment_that_names_packages() -> None:
    rest = LOCK
    for name, version, marker, hashes in PINS:
        rest = rest.replace(f"{name}=={version}{f' ; {marker}' if marker else ''} \\\n{hashes}", "", 1)
    assert [
        line
        for line in rest.splitlines()
        if not re.fullmatch(r"    #(?: via)?(?: +[\w-]+(?: \(pyproject\.toml\))?)?", line)
    ] == []


def test_whatever_pyproject_asks_for_is_pinned_to_a_version_that_it_takes() -> None:
    pinned = {name: version for name, version, *_ in PINS}
    for wanted in asked_for():
        assert wanted.name in pinned, "run scripts/lock"
        assert wanted.specifier.contains(pinned[wanted.name]), f"{wanted}: run scripts/lock"


def test_nothing_is_pinned_that_nobody_asks_for() -> None:
    direct = {
        name
        for name, *_ in PINS
        if re.search(rf"^{name}==(?:.*\n)(?:    --hash.*\n)+(?:    #.*\n)*?    #.*pyproject", LOCK, re.M)
    }
    assert {wanted.name for wanted in asked_for()} == direct
