"""What happened as log records: decisions, grants, windows of plans, crashes of agents, corrected turns. Pure.

Users and projects are named where metrics name them. Why somebody granted something is never sent.
"""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.entry import Work
from acp_proxy.core.money import NANO, is_money
from acp_proxy.core.notice import Notice
from acp_proxy.core.plans import FULL, PlanChange
from acp_proxy.ledger import Row
from acp_proxy.ledger.budgets import Grant
from acp_proxy.otlp.common import Value, any_value, attributes
from acp_proxy.otlp.protobuf import block, fixed64, text, whole
from acp_proxy.otlp.spans import ids, tokens_of

_INFO, _WARN, _ERROR = (9, "INFO"), (13, "WARN"), (17, "ERROR")
_SEVERITIES = {"threshold": _WARN, "refusal": _ERROR, "stop": _ERROR, "plan": _WARN}


class Record(Struct, frozen=True):
    """One log record. `at` is Unix ns; an attribute that is None is unknown, and left out."""

    event: str
    at: int
    severity: tuple[int, str]
    attributes: dict[str, Value | None]
    trace: bytes = b""
    span: bytes = b""

    def encoded(self, observed_at: int) -> bytes:
        """As a scope has it."""
        content = (
            fixed64(1, max(self.at, 0)),
            whole(2, self.severity[0]),
            text(3, self.severity[1]),
            block(5, any_value(self.event)),
            attributes(6, self.attributes),
            block(9, self.trace) if self.trace else b"",
            block(10, self.span) if self.span else b"",
            fixed64(11, observed_at),
            text(12, self.event),
        )
        return block(2, b"".join(content))


class Records:
    """`shown` are dimensions of people that may leave: "user", "project"."""

    def __init__(self, shown: tuple[str, ...] = ()) -> None:
        self._shown = shown

    def notice(self, notice: Notice) -> Record:
        """A threshold that was reached, a refusal, a turn that was stopped, a model without a price."""
        event = {"plan": "acp_proxy.plan.threshold", "unpriced": "acp_proxy.model.unpriced"}.get(
            notice.kind, f"acp_proxy.budget.{notice.kind}"
        )
        of_plan = notice.kind == "plan"
        return Record(
            event,
            notice.at,
            _SEVERITIES.get(notice.kind, _INFO),
            {
                "acp_proxy.id": notice.id,
                "acp_proxy.detail": notice.detail,
                "acp_proxy.budget": notice.budget,
                "acp_proxy.budget.mode": notice.mode,
                "acp_proxy.window": notice.window,
                "acp_proxy.threshold": None if notice.percent is None else notice.percent / 100,
                "acp_proxy.unit": notice.unit,
                "acp_proxy.spent": _amount(notice.spent, notice.unit),
                "acp_proxy.held": _amount(notice.held, notice.unit),
                "acp_proxy.limit": _amount(notice.limit, notice.unit),
                "acp_proxy.resets_at": notice.resets_at,
                "gen_ai.agent.name": notice.agent,
                "gen_ai.request.model": None if of_plan else notice.model,
                "acp_proxy.team": notice.team,
                **{f"acp_proxy.{name}": getattr(notice, name) for name in self._shown},
            },
        )

    def grant(self, grant: Grant) -> Record:
        found: dict[str, Value | None] = {
            "acp_proxy.id": grant.id,
            "acp_proxy.budget": grant.budget,
            "acp_proxy.unit": grant.unit,
            "acp_proxy.granted": _amount(grant.amount, grant.unit),
            "acp_proxy.until": grant.until,
        }
        if "user" in self._shown:
            found["acp_proxy.user"] = grant.who
        return Record("acp_proxy.budget.grant", grant.at, _INFO, found)

    def plan(self, change: PlanChange) -> Record:
        told = change.told
        found: dict[str, Value | None] = {
            "gen_ai.agent.name": change.agent,
            "acp_proxy.window": told.window,
            "acp_proxy.used": None if told.used is None else told.used / FULL,
            "acp_proxy.status": told.status,
            "acp_proxy.overage": told.overage,
            "acp_proxy.resets_at": told.resets_at,
        }
        if "user" in self._shown:
            found["acp_proxy.user"] = change.user
        return Record("acp_proxy.plan.window", told.seen_at, _INFO, found)

    def crash(self, row: Row, work: Work | None = None) -> Record:
        """With the span of the turn that it ended."""
        trace, span = ids(row.entry.id, work)
        found: dict[str, Value | None] = {
            "gen_ai.agent.name": row.origin.agent,
            "gen_ai.agent.version": row.origin.agent_version,
            "gen_ai.conversation.id": row.entry.session,
            "error.type": row.entry.stop_reason,
        }
        return Record("acp_proxy.agent.crash", row.entry.ended_at, _ERROR, found, trace, span)

    def corrected(self, row: Row, number: int, at: int, work: Work | None = None) -> Record:
        """What a turn used as it is known now: a span that was sent cannot be changed."""
        entry = row.entry
        trace, span = ids(entry.id, work)
        cost = next(iter(entry.costs), None)  # nearly all turns have one currency; metrics have all
        found: dict[str, Value | None] = {
            "acp_proxy.id": entry.id,
            "acp_proxy.correction": number + 1,
            "gen_ai.agent.name": row.origin.agent,
            "gen_ai.agent.version": row.origin.agent_version,
            "gen_ai.conversation.id": entry.session,
            "gen_ai.response.model": entry.model,
            **tokens_of(entry),
            "acp_proxy.cost": None if cost is None else cost.nano / NANO,
            "acp_proxy.cost.currency": None if cost is None else cost.currency,
            "acp_proxy.usage.source": entry.usage_source,
            "acp_proxy.cost.source": entry.cost_source,
            "acp_proxy.team": row.origin.team,
            **{f"acp_proxy.{name}": getattr(row.origin, name) for name in self._shown},
        }
        return Record("acp_proxy.turn.corrected", at, _INFO, found, trace, span)


def _amount(amount: int | None, unit: str | None) -> float | int | None:
    if amount is None or unit is None:
        return None
    return amount / NANO if is_money(unit) else amount
