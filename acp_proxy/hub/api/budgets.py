"""Answers about budgets: standings, grants, what was announced and decided; and about windows of plans."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from acp_proxy.core.notice import Notice
from acp_proxy.core.plans import PlanChange, PlanState
from acp_proxy.core.windows import DAY
from acp_proxy.hub.api.central import LAYER, account_for
from acp_proxy.hub.api.desk import SEES_ALL, Desk, reads, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.api.spending.members import users_of
from acp_proxy.hub.api.turns import figures
from acp_proxy.hub.policy import is_led
from acp_proxy.ledger.budgets import DecisionCount, Grant, Overshoot
from acp_proxy.ledger.hub import questions, wire
from acp_proxy.ledger.hub.questions import Of
from acp_proxy.ledger.hub.wire import Done, Figures, Nothing
from acp_proxy.ledger.notices import DeliveryCount

_MOST = 1000  # of anything in one call
_LONGEST_GRANT = 3660 * DAY


def standings(desk: Desk, asked: wire.Accounts) -> list[Figures]:
    _few(asked.accounts)
    accounts = [account_for(desk, account) for account in asked.accounts]
    return figures(desk.ledger.standing(accounts, desk.claims.now(asked.now, desk.now)))


def recent_costs(desk: Desk, asked: wire.Resembling) -> list[int]:
    organisation = desk.claims.organisation(asked.organisation)
    user = None if asked.user is None else desk.claims.own(asked.user)
    n = max(1, min(asked.n, _MOST))
    return desk.ledger.recent_costs(organisation, asked.agent, asked.unit, model=asked.model, user=user, n=n)


def grant(desk: Desk, asked: Grant) -> Nothing:
    who = desk.who.user if _is_led(desk, asked) else desk.claims.giver(asked)
    given = replace(asked, organisation=desk.claims.organisation(asked.organisation), who=who)
    if not 0 < given.until - given.at <= _LONGEST_GRANT:
        raise RefusedError(400, "expected a grant that ends after it begins, and within ten years")
    desk.ledger.grant(given)
    return Nothing()


def _is_led(desk: Desk, asked: Grant) -> bool:
    """Whether the budget is one that the asker may set themselves, as a lead."""
    if asked.layer != LAYER or desk.who.role != "lead":
        return False
    document = desk.policies.of(desk.ledger, desk.who.organisation).kept.document
    return any(table.get("name") == asked.budget and is_led(desk.who, table) for table in document.budgets)


def grants(desk: Desk, asked: wire.GrantsAt) -> list[Grant]:
    found = desk.ledger.grants(desk.claims.organisation(asked.organisation), asked.at)
    of_lead = users_of(desk, desk.who.teams_led) if desk.who.role == "lead" else ()
    return [each for each in found if desk.claims.sees_grant(each) or each.value in of_lead]


def announce(desk: Desk, asked: wire.Announcement) -> Done:
    account = account_for(desk, asked.account)
    return Done(desk.ledger.announce(account, asked.threshold, _noted(desk, asked.notice)))


def decisions(desk: Desk, asked: wire.Decisions) -> Nothing:
    _few(asked.decisions)
    decided = []
    for account, decision in asked.decisions:
        with suppress(RefusedError):  # of a budget that the policy had when it was decided
            decided.append((account_for(desk, account), decision))
    desk.ledger.count_decisions(decided)
    return Nothing()


def plan_decisions(desk: Desk, asked: wire.PlanDecisions) -> Nothing:
    _few(asked.standings)
    desk.ledger.count_plan_decisions(desk.claims.organisation(asked.organisation), asked.standings)
    return Nothing()


def decision_counts(desk: Desk, asked: Of) -> list[DecisionCount]:
    return desk.ledger.decision_counts(desk.claims.organisation(asked.organisation))


def overshoots(desk: Desk, asked: Of) -> list[Overshoot]:
    return desk.ledger.overshoots(desk.claims.organisation(asked.organisation))


def notices(desk: Desk, asked: wire.Notices) -> Nothing:
    _few(asked.notices)
    desk.ledger.outbox.note(filter(None, [_noted(desk, each) for each in asked.notices]))
    return Nothing()


def deliveries(desk: Desk, asked: Of) -> list[DeliveryCount]:
    return desk.ledger.delivery_counts(desk.claims.organisation(asked.organisation))


def note_plan(desk: Desk, asked: wire.Told) -> list[PlanState]:
    _few(asked.windows)
    return desk.ledger.note_plan(desk.claims.origin(asked.origin), asked.windows)


def announce_plan(desk: Desk, asked: wire.PlanAnnouncement) -> Done:
    organisation = desk.claims.organisation(asked.organisation)
    state = replace(asked.state, user=desk.claims.writer(asked.state.user))
    noted = _noted(desk, asked.notice)
    return Done(desk.ledger.announce_plan(organisation, state, asked.threshold, noted, asked.budget))


def plans(desk: Desk, asked: wire.Plans) -> list[PlanState]:
    return desk.ledger.plans(desk.claims.organisation(asked.organisation), desk.claims.own(asked.user))


def plan_changes(desk: Desk, asked: wire.Plans) -> list[PlanChange]:
    organisation, user = desk.claims.organisation(asked.organisation), desk.claims.own(asked.user)
    return desk.ledger.plan_changes(organisation, asked.since, asked.until, user)


def _noted(desk: Desk, notice: Notice | None) -> Notice | None:
    return None if notice is None else desk.claims.notice(notice)


def _few(given: Sequence[object]) -> None:
    if len(given) > _MOST:
        raise RefusedError(413, f"expected at most {_MOST} at once")


ANSWERS = [
    writes(wire.STANDINGS, standings),  # it books what dead processes held
    reads(wire.RECENT_COSTS, recent_costs),
    writes(wire.GRANT, grant),
    reads(wire.GRANTS, grants),
    writes(wire.ANNOUNCE, announce),
    writes(wire.DECISIONS, decisions),
    writes(wire.PLAN_DECISIONS, plan_decisions),
    reads(questions.DECISION_COUNTS, decision_counts, SEES_ALL),
    reads(questions.OVERSHOOTS, overshoots, SEES_ALL),
    writes(wire.NOTICES, notices),
    reads(questions.DELIVERIES, deliveries, SEES_ALL),
    writes(wire.NOTE_PLAN, note_plan),
    writes(wire.ANNOUNCE_PLAN, announce_plan),
    reads(questions.PLANS, plans),
    reads(questions.PLAN_CHANGES, plan_changes),
]
