"""Asking for more: who may ask for what, who sees it, who decides, and what a decision does."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.requests import Decision, MoreRequest, Wish
from acp_proxy.core.notice import KINDS
from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.requests import MOST_PENDING
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub import asking
from acp_proxy.ledger.notices import Subscription
from acp_proxy.system.decoding import json_decoder
from harness.rows import NOON
from tests.hub.api.conftest import Ask

WISH = Wish("r1", "admin", "daily", "user", "bob", 5_000_000_000, "USD", "the release")
APPROVE = Decision("r1", approve=True, until=NOON + 2 * HOUR)


def decoded(answer: tuple[int, bytes]) -> MoreRequest:
    assert answer[0] == 200, answer
    return json_decoder(MoreRequest).decode(answer[1])


def seen(ask: Ask, who: str, **fields: Any) -> list[str]:
    status, body = ask(who, asking.REQUESTS, asking.Wanted(**fields))
    assert status == 200, body
    return [each.wish.id for each in json_decoder(list[MoreRequest]).decode(body)]


def detail(answer: tuple[int, bytes]) -> tuple[int, str]:
    return answer[0], json.loads(answer[1])["detail"]


def test_a_request_is_of_whom_the_token_names_and_noted_once(ask: Ask, ledger: str) -> None:
    asked = decoded(ask("bob", asking.ASK, WISH))
    assert (asked.user, asked.team, asked.state, asked.at) == ("bob", "blue", "pending", NOON)
    assert decoded(ask("bob", asking.ASK, replace(WISH, amount=1))) == asked
    with closing(open_ledger(ledger, journals=())) as opened:
        claimed = opened.outbox.claim(Subscription("default", "leads", KINDS), NOON + HOUR, NOON + DAY)
        assert claimed
        notice = claimed.notice
        assert (notice.kind, notice.user, notice.team, notice.amount) == ("request", "bob", "blue", WISH.amount)
        assert (notice.request, notice.why) == ("r1", "the release")
        assert opened.outbox.claim(Subscription("default", "leads", KINDS), NOON + HOUR, NOON + DAY) is None


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"value": "mallory"}, 403),
        ({"value": None}, 403),
        ({"per": None, "value": "mallory"}, 403),
        ({"per": "team", "value": "red"}, 403),
        ({"layer": "flag"}, 400),
        ({"amount": 0}, 400),
        ({"amount": -5}, 400),
        ({"unit": ""}, 400),
        ({"id": "../r"}, 400),
        ({"why": " "}, 400),
        ({"why": "a\nb"}, 400),
        ({"budget": "x" * 201}, 400),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_not_ones_own_or_no_sound_wish_is_refused(ask: Ask, changed: dict[str, Any], status: int) -> None:
    assert ask("bob", asking.ASK, replace(WISH, **changed))[0] == status
    assert seen(ask, "finance") == []


def test_the_id_of_anothers_request_is_refused(ask: Ask) -> None:
    decoded(ask("bob", asking.ASK, WISH))
    assert detail(ask("developer", asking.ASK, replace(WISH, value="mallory")))[0] == 409


def test_nobody_has_more_than_so_many_that_wait(ask: Ask) -> None:
    for number in range(MOST_PENDING):
        decoded(ask("bob", asking.ASK, replace(WISH, id=f"r{number}")))
    assert ask("bob", asking.ASK, replace(WISH, id="more"))[0] == 429
    decoded(ask("administrator", asking.DECIDE, Decision("r0", approve=False)))
    decoded(ask("bob", asking.ASK, replace(WISH, id="more")))


def test_each_role_sees_the_requests_that_are_theirs(ask: Ask) -> None:
    decoded(ask("bob", asking.ASK, WISH))
    decoded(ask("developer", asking.ASK, replace(WISH, id="r2", value="mallory")))
    assert set(seen(ask, "administrator")) == set(seen(ask, "finance")) == {"r1", "r2"}
    assert set(seen(ask, "blue")) == {"r1", "r2"}  # mallory, who leads the team blue
    assert seen(ask, "blue", own=True) == seen(ask, "developer") == seen(ask, "lead") == ["r2"]
    assert seen(ask, "bob") == ["r1"]
    assert seen(ask, "elsewhere") == []
    assert seen(ask, "finance", state="denied") == []


@pytest.mark.parametrize("who", ["developer", "service", "finance", "lead", "bob", "elsewhere"])
def test_only_a_lead_of_the_team_or_an_administrator_decides(ask: Ask, who: str) -> None:
    decoded(ask("bob", asking.ASK, WISH))
    assert ask(who, asking.DECIDE, APPROVE)[0] == 403
    assert seen(ask, "bob", state="pending") == ["r1"]


def test_what_several_teams_share_is_the_administrators_to_give(ask: Ask) -> None:
    decoded(ask("bob", asking.ASK, replace(WISH, per=None, value=None)))
    assert ask("blue", asking.DECIDE, APPROVE)[0] == 403
    assert decoded(ask("administrator", asking.DECIDE, APPROVE)).state == "approved"


@pytest.mark.parametrize("who", ["blue", "administrator"])
def test_an_approved_request_is_a_grant_and_all_of_it_is_in_the_log(ask: Ask, ledger: str, who: str) -> None:
    decoded(ask("bob", asking.ASK, WISH))
    decided = decoded(ask(who, asking.DECIDE, replace(APPROVE, amount=2_000_000_000, note="until Friday")))
    assert (decided.state, decided.amount, decided.until) == ("approved", 2_000_000_000, APPROVE.until)
    with closing(open_ledger(ledger, journals=())) as opened:
        (grant,) = opened.grants("default", NOON + 1)
        assert (grant.budget, grant.value, grant.amount, grant.until) == ("daily", "bob", 2_000_000_000, APPROVE.until)
        assert (grant.who, grant.why) == ("mallory", "until Friday")
        lines = [json.loads(line) for line in Store(opened.tables, "default").audit.exported()]
    assert [(line["actor"], line["action"]) for line in lines] == [
        ("bob", "request.made"),
        ("mallory", "request.approved"),
    ]
    assert (lines[1]["before"]["state"], lines[1]["after"]["state"]) == ("pending", "approved")


def test_a_decision_stands(ask: Ask, ledger: str) -> None:
    """Sent once more, because its answer was lost, it is answered as before; another one is refused."""
    decoded(ask("bob", asking.ASK, WISH))
    denied = decoded(ask("blue", asking.DECIDE, Decision("r1", approve=False, note="no")))
    assert decoded(ask("blue", asking.DECIDE, Decision("r1", approve=False, note="no"))) == denied
    assert detail(ask("administrator", asking.DECIDE, APPROVE)) == (409, "no request 'r1' that waits for a decision")
    with closing(open_ledger(ledger, journals=())) as opened:
        assert opened.grants("default") == []


@pytest.mark.parametrize(
    "changed",
    [{"until": None}, {"until": NOON}, {"until": NOON + 4000 * DAY}, {"amount": 0}, {"amount": -1}, {"note": "a\0b"}],
    ids=str,
)
def test_an_approval_without_a_sound_end_or_amount_is_refused(ask: Ask, changed: dict[str, Any]) -> None:
    decoded(ask("bob", asking.ASK, WISH))
    assert ask("administrator", asking.DECIDE, replace(APPROVE, **changed))[0] == 400
    assert seen(ask, "bob", state="pending") == ["r1"]
