"""Chance with a seed that is shown when a test fails, and places that are small or cannot be written."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.places import mounted
from tests.ledger.conftest import read_only_directory

__all__ = ["chance", "disk", "read_only_directory"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB: room for a ledger, until a test fills it."""
    directory = tmp_path / "disk"
    directory.mkdir()
    with mounted(directory, "size=8m"):
        yield directory


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """`FAULTS_SEED` in the environment makes the same choices again; the machine's own differ."""
    seed = int(os.environ.get("FAULTS_SEED") or random.SystemRandom().randrange(1 << 32))
    request.node.add_report_section("call", "seed", f"FAULTS_SEED={seed}")
    return random.Random(seed)
