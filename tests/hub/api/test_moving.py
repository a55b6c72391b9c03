"""A ledger that is moved to a hub keeps whose its rows are; only an administrator moves one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.windows import DAY
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import LedgerForbiddenError, Query, open_ledger
from acp_proxy.ledger.budgets import Grant
from acp_proxy.ledger.hub import wire
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.writing.copying import Copied, copy
from acp_proxy.system.decoding import json_decoder
from harness import hub
from harness.rows import ALICE, BOB, NOON, row
from tests.core.accounts import budget
from tests.hub.api.conftest import Ask
from tests.ledger.holds import account
from tests.ledger.warned import Warnings

PEOPLE = {
    "root": Identity("root", "default", None, "administrator"),
    "program": Identity("root", "default", None, "administrator", scopes=("meter",)),
    "alice": Identity("alice", "default", "core", "developer"),
    "finance": Identity("carol", "default", None, "finance"),
}
GRANT = Grant("g", "default", "user", "daily", None, 5 * 10**9, "USD", NOON, NOON + DAY, "alice", "release")


def by(url: str, who: str) -> HubLedger:
    return HubLedger(
        url, lambda: NOON, patience=20, warn=Warnings(), journals=(), authorization=lambda _: f"Bearer {who}"
    )


def test_rows_keep_their_users_and_a_second_copy_adds_what_came_since(tmp_path: Path) -> None:
    before = f"sqlite:///{tmp_path}/before.db"
    with (
        hub.running(f"sqlite:///{tmp_path}/hub.db", PEOPLE, clock=lambda: NOON) as url,
        closing(open_ledger(before, journals=())) as source,
        closing(by(url, "root")) as target,
    ):
        source.append([row(origin=ALICE, session="s1"), row(origin=BOB, session="s2")])
        source.grant(GRANT)
        assert copy(source, target, titles=True) == Copied(2, 1, 2)
        source.append([row(origin=BOB, session="s3")])
        assert copy(source, target, titles=True) == Copied(1, 0, 3)
        assert list(target.rows(Query())) == list(source.rows(Query()))
        for by_what in (("user", "team"), ("day",)):
            found = target.summed(Query(), by_what)
            assert sorted(found, key=repr) == sorted(source.summed(Query(), by_what), key=repr)


@pytest.mark.parametrize("who", ["alice", "finance", "program"])
def test_who_is_no_administrator_moves_nothing(tmp_path: Path, who: str) -> None:
    with (
        hub.running(f"sqlite:///{tmp_path}/hub.db", PEOPLE, clock=lambda: NOON) as url,
        closing(open_ledger(f"sqlite:///{tmp_path}/before.db", journals=())) as source,
    ):
        source.append([row(origin=BOB)])
        with closing(by(url, who)) as target, pytest.raises(LedgerForbiddenError):
            copy(source, target, titles=True)
        with closing(by(url, "root")) as target:
            assert list(target.rows(Query())) == []


def test_what_no_sound_ledger_has_is_refused_here_too(ask: Ask) -> None:
    rows = [row(id="next year", at=NOON + 400 * DAY, origin=BOB), row(id="sound", origin=BOB)]
    status, body = ask("administrator", wire.MOVE, wire.Rows(rows))
    found = json_decoder(wire.Appended).decode(body)
    assert (status, found.new, [each.id for each in found.refused]) == (200, 1, ["next year"])


def test_some_machines_at_the_hub_and_others_still_at_its_database_share_a_budget(tmp_path: Path) -> None:
    """So a team moves from PostgreSQL one machine after another, while agents run."""
    database = f"sqlite:///{tmp_path}/team.db"
    pool = account(budget("9 USD"), ALICE)
    with (
        hub.running(database, PEOPLE, clock=lambda: NOON) as url,
        closing(open_ledger(database, journals=())) as direct,
        closing(by(url, "alice")) as at_hub,
    ):
        direct.append([row(origin=ALICE, session="before")])
        at_hub.append([row(origin=replace(ALICE, user="whoever"), session="after")])
        (here,), (there,) = direct.standing([pool], NOON + 1), at_hub.standing([pool], NOON + 1)
        assert here.spent == there.spent == 2 * 10**7
        assert [found.origin.user for found in direct.rows(Query())] == ["alice", "alice"]
