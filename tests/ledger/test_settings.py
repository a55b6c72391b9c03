"""By which files machines judge, as the ledger keeps it, on a real database of each backend."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.windows import DAY
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.settings import KEPT, Settings
from harness.rows import NOON
from tests.ledger.conftest import AND_HUB, Open

pytestmark = AND_HUB

LAPTOP = Settings("default", "laptop", "alice", "admin", "d1", 1, NOON)


def test_the_latest_of_each_layer_user_and_machine_is_kept(ledger: BudgetLedger, another: Open) -> None:
    users = replace(LAPTOP, layer="user")
    bobs, towers = replace(LAPTOP, user="bob"), replace(LAPTOP, host="tower")
    for said in (LAPTOP, users, bobs, towers):
        ledger.note_settings(said)
    changed = replace(LAPTOP, digest="d3", seen_at=NOON + 1)
    another().note_settings(changed)
    assert ledger.settings("default", NOON) == [changed, users, bobs, towers]


def test_organisations_are_told_apart(ledger: BudgetLedger) -> None:
    others = replace(LAPTOP, organisation="other")
    ledger.note_settings(others)
    assert ledger.settings("default", NOON) == []
    ledger.note_settings(LAPTOP)
    assert [ledger.settings(each, NOON) for each in ("default", "other")] == [[LAPTOP], [others]]


def test_what_did_not_change_is_written_once_a_day(ledger: BudgetLedger) -> None:
    ledger.note_settings(LAPTOP)
    ledger.note_settings(replace(LAPTOP, seen_at=NOON + DAY))
    assert ledger.settings("default", NOON) == [LAPTOP]
    later = replace(LAPTOP, seen_at=NOON + DAY + 1)
    ledger.note_settings(later)
    assert ledger.settings("default", NOON) == [later]


def test_another_form_of_the_digest_is_a_change(ledger: BudgetLedger) -> None:
    ledger.note_settings(LAPTOP)
    ledger.note_settings(replace(LAPTOP, form=2))
    assert [each.form for each in ledger.settings("default", NOON)] == [2]


def test_a_machine_that_was_not_seen_for_thirty_days_is_forgotten(ledger: BudgetLedger) -> None:
    ledger.note_settings(LAPTOP)
    assert ledger.settings("default", NOON + KEPT - 1) == [LAPTOP]
    assert ledger.settings("default", NOON + KEPT) == []
    tower = replace(LAPTOP, host="tower", seen_at=NOON + KEPT + 1)
    ledger.note_settings(tower)
    assert ledger.settings("default", NOON) == [tower]  # and nothing is left of the other
