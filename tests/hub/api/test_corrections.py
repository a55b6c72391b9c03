"""Rows in the place of others, by role: who is no administrator completes turns of their own, and does nothing else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import Origin, UsageSource
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.ledger.hub import questions
from acp_proxy.ledger.hub.place import Corrected
from acp_proxy.system.decoding import json_decoder
from harness.rows import MINUTE, NOON, amended, line, row
from tests.hub.api.conftest import BOB, MALLORY, Ask

OTHERS = ("finance", "lead", "developer", "service")


@pytest.fixture
def turn(ledger: str, address: str) -> Callable[..., Row]:
    """A turn as the ledger has it from then on."""

    def kept(usage_source: UsageSource = "partial", origin: Origin = MALLORY) -> Row:
        made = row(line(input=90), id="told-in-part", at=NOON - 9 * MINUTE, usage_source=usage_source, origin=origin)
        with closing(open_ledger(ledger, journals=())) as opened:
            assert opened.append([made]) == 1
        return made

    return kept


def completed(before: Row, tokens: int = 500, **changes: Any) -> Row:
    told = {"lines": (line(cost="0.5", input=tokens),), "usage_source": "agent", "detail": "from a book"}
    return amended(before, **{**told, **changes})


def as_kept(ledger: str) -> Row:
    with closing(open_ledger(ledger, journals=())) as opened:
        return next(row for row in opened.rows(Query()) if row.entry.id == "told-in-part")


def is_done(answer: tuple[int, bytes]) -> bool:
    status, body = answer
    assert status == 200
    return json_decoder(Corrected).decode(body).done


def correction(before: Row, after: Row) -> questions.Correction:
    return questions.Correction(before, after, NOON)


@pytest.mark.parametrize("role", OTHERS)
@pytest.mark.parametrize("told", ["partial", "estimated", "none"])
def test_everybody_completes_a_turn_of_their_own_once(
    ask: Ask, ledger: str, turn: Callable[..., Row], role: str, told: UsageSource
) -> None:
    before = turn(told)
    asked = correction(before, completed(before))
    assert is_done(ask(role, questions.CORRECT, asked)) is True
    assert as_kept(ledger).entry == asked.after.entry
    assert ask(role, questions.CORRECT, asked)[0] == 403, "it tells all by now"


@pytest.mark.parametrize("role", OTHERS)
def test_nobody_else_corrects_what_an_agent_told_in_full(
    ask: Ask, ledger: str, turn: Callable[..., Row], role: str
) -> None:
    before = turn("agent")
    asked = correction(before, completed(before, 1))
    assert ask(role, questions.CORRECT, asked)[0] == 403
    assert as_kept(ledger).entry == before.entry
    assert is_done(ask("administrator", questions.CORRECT, asked)) is True


@pytest.mark.parametrize(
    ("told", "tokens", "status"),
    [("partial", 89, 403), ("partial", 90, 200), ("estimated", 1, 200), ("estimated", 0, 403), ("none", 0, 403)],
)
def test_a_lower_bound_never_becomes_less_and_no_turn_becomes_nothing(
    ask: Ask, turn: Callable[..., Row], told: UsageSource, tokens: int, status: int
) -> None:
    before = turn(told)
    assert ask("developer", questions.CORRECT, correction(before, completed(before, tokens)))[0] == status


@pytest.mark.parametrize("who", ["bob", "blue"])
def test_a_turn_of_another_user_is_left_alone(ask: Ask, ledger: str, turn: Callable[..., Row], who: str) -> None:
    before = turn(origin=BOB if who == "blue" else MALLORY)
    claimed = replace(before, origin=replace(before.origin, user="bob" if who == "bob" else "mallory"))
    assert ask(who, questions.CORRECT, correction(claimed, completed(claimed)))[0] == 409
    assert as_kept(ledger).entry == before.entry


def test_only_its_usage_changes_whatever_else_is_claimed(ask: Ask, ledger: str, turn: Callable[..., Row]) -> None:
    before = turn()
    claimed = replace(before, origin=replace(BOB, project="claimed"))
    after = completed(claimed, started_at=NOON - 90 * MINUTE, session="claimed", kind="call")
    assert is_done(ask("developer", questions.CORRECT, correction(claimed, after))) is True
    kept = as_kept(ledger)
    assert kept.origin == before.origin
    assert kept.entry == completed(before).entry
    with closing(open_ledger(ledger, journals=())) as opened:
        assert opened.rebuild(), "sums are those of the rows"


def test_a_row_that_was_corrected_meanwhile_and_one_that_is_not_there_stay(
    ask: Ask, ledger: str, turn: Callable[..., Row]
) -> None:
    before = turn()
    other = completed(before, usage_source="partial")
    assert is_done(ask("developer", questions.CORRECT, correction(other, completed(before)))) is False
    unknown = amended(before, id="unknown")
    assert is_done(ask("developer", questions.CORRECT, correction(unknown, completed(unknown)))) is False
    assert as_kept(ledger).entry == before.entry


def test_what_no_sound_proxy_sends_is_refused(ask: Ask, turn: Callable[..., Row]) -> None:
    before = turn()
    after = completed(before, lines=(line(cost="-1", input=500),))
    status, body = ask("developer", questions.CORRECT, correction(before, after))
    assert status == 400
    assert b"negative cost" in body
