"""The proof that a cap holds, in a short form: real processes against one cap, on a real database of each backend."""

from __future__ import annotations

from pathlib import Path

from bench.admission_proof import Case, prove
from harness.postgres import Server, running
from tests.ledger.conftest import ISOLATIONS, TABLES


def test_a_cap_of_fifty_turns_admits_exactly_fifty(url: str, tmp_path: Path) -> None:
    outcome = prove(Case("exact", processes=6, prompts=12, cap=50, exact=True), url, tmp_path)
    assert outcome.faults == []
    assert (outcome.admitted, outcome.booked) == (50, 50)


def test_processes_that_are_killed_leave_no_hold_and_no_turn_unbooked(url: str, tmp_path: Path) -> None:
    outcome = prove(Case("killed", processes=6, prompts=30, cap=60), url, tmp_path)
    assert outcome.faults == []
    assert outcome.killed


def test_a_database_that_is_restarted_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    with running() as server:
        outcome = prove(Case("restart", 6, 30, cap=60, restart=True), server.create("restart"), tmp_path, server)
    assert outcome.faults == []


def test_the_control_that_reads_and_then_writes_overspends(postgres: Server, tmp_path: Path) -> None:
    """Else the proof could not fail. The strictest level does not help: it reads and writes in two transactions."""
    strictest = ISOLATIONS[-1]
    postgres.execute(strictest, f"TRUNCATE {', '.join(TABLES)}")
    case = Case("naive", processes=6, prompts=30, cap=50, exact=True, naive=True)
    outcome = prove(case, postgres.url(strictest), tmp_path)
    assert "committed beyond the cap" in outcome.faults
