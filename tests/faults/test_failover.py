"""A failover in a real cluster, in a short form: what `scripts/prove-failover` does many times."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.failover_proof import Trial, prove
from harness.cluster.cluster import started
from harness.cluster.programs import NEEDED
from harness.cluster.settings import Times

_QUICK = Times(ttl=5, loop_wait=1, retry_timeout=2)  # Patroni gives up a leader that is dead after `ttl`

pytestmark = pytest.mark.needs(*NEEDED)


def test_a_primary_that_is_killed_takes_no_turn_along(tmp_path: Path) -> None:
    trial = Trial("kill", writers=4, cap=120)
    with started(times=_QUICK, pooled=False) as cluster:
        outcome = prove(trial, cluster, "killed", tmp_path, random.Random())
    assert (outcome.faults, outcome.booked >= trial.cap) == ([], True)
