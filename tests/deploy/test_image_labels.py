"""The labels by which a registry of images shows whose an image is: the same as the package says of itself."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

from acp_proxy import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PREFIX = "org.opencontainers.image."


def test_the_labels_of_the_image_say_what_the_package_says() -> None:
    found = labels(last_stage())
    assert found.pop("description").startswith(PROJECT["description"].partition(":")[0])
    assert found.pop("documentation").startswith(PROJECT["urls"]["Source"])
    assert found == {
        "title": PROJECT["name"],
        "version": __version__,
        "licenses": PROJECT["license"],
        "url": PROJECT["urls"]["Homepage"],
        "source": PROJECT["urls"]["Source"],
        "vendor": PROJECT["authors"][0]["name"],
        "base.name": "docker.io/library/python:${PYTHON}",
    }


def test_a_page_that_a_label_names_is_there() -> None:
    path = labels(last_stage())["documentation"].partition("/blob/main/")[2]
    assert (ROOT / path).is_file()


def test_the_stage_knows_the_argument_that_its_labels_use() -> None:
    """An ARG above the first FROM holds for FROM alone, and would leave the label's end empty."""
    assert re.findall(r"^ARG (\w+)$", last_stage(), re.MULTILINE) == ["PYTHON"]


def last_stage() -> str:
    """Of the Dockerfile, with each instruction on one line: what a stage before it says is not in the image."""
    text = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return re.split(r"^FROM .*$", text, flags=re.MULTILINE)[-1]


def labels(stage: str) -> dict[str, str]:
    words = [word for line in re.findall(r"^LABEL (.+)$", stage, re.MULTILINE) for word in shlex.split(line)]
    found = dict(word.split("=", 1) for word in words)
    assert len(found) == len(words)
    assert all(name.startswith(PREFIX) for name in found)
    return {name.removeprefix(PREFIX): value for name, value in found.items()}
