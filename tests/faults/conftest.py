"""Chance with a seed that is shown when a test fails, and places that are small or cannot be written."""

from __future__ import annotations

import os
import random

import pytest

from tests.ledger.conftest import read_only_directory, small_disk

__all__ = ["chance", "read_only_directory", "small_disk"]


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """`FAULTS_SEED` in the environment makes the same choices again; the machine's own differ."""
    seed = int(os.environ.get("FAULTS_SEED") or random.SystemRandom().randrange(1 << 32))
    request.node.add_report_section("call", "seed", f"FAULTS_SEED={seed}")
    return random.Random(seed)  # noqa: S311  not for secrets
