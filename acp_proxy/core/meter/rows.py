"""The rows of a turn: its own, and those of what its agent reports beyond it.

A row says where its figures come from and why. No token and no money is in two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.agents import InputCounts
from acp_proxy.core.agents.profile import Overlap
from acp_proxy.core.entry import CostSource, Entry, Kind, UsageLine, UsageSource
from acp_proxy.core.events import Counters, ToldSoFar, TurnEnded
from acp_proxy.core.meter.agent_cost import Increase
from acp_proxy.core.meter.context import context_so_far, note_context, request_context
from acp_proxy.core.meter.counters import joined
from acp_proxy.core.meter.estimate import Estimate, estimate
from acp_proxy.core.meter.lower_bound import tokens_told
from acp_proxy.core.meter.model_rows import Share, Spread, merged, read_rows, spread, without
from acp_proxy.core.meter.observations import TurnObservations
from acp_proxy.core.meter.readers.reader import TurnUsage
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.meter.subagents import Subagents
from acp_proxy.core.meter.turn_cost import Bill, Prices, computed_lines, turn_bill, unpaid_lines
from acp_proxy.core.meter.turn_usage import turn_usage
from acp_proxy.core.money import summed
from acp_proxy.core.pricing import Pricer
from acp_proxy.core.usage import NOTHING, Usage

_HIDDEN = "cached input is not told, and priced in full"


class _ExtraRow(Struct, frozen=True):
    """Tokens that the agent told beyond the turn's own, and which row they make."""

    kind: Kind
    shares: tuple[Share, ...]
    source: UsageSource = "agent"
    detail: str = ""


class Rows:
    """Makes rows. `new_id(at)` names those that are no turn; without `estimate` nothing is guessed."""

    def __init__(self, pricer: Pricer, new_id: Callable[[int], str], *, estimate: bool) -> None:
        self._pricer = pricer
        self._new_id = new_id
        self._estimate = estimate

    def of_turn(
        self, ended: TurnEnded, account: SessionAccount, observed: TurnObservations, increase: Increase
    ) -> list[Entry]:
        """The turn's own row comes last: it stands at the end of all that it caused."""

        def guess() -> Estimate | None:
            return estimate(ended, account, observed.context, self.context_size(account)) if self._estimate else None

        used = turn_usage(ended, account, observed, increase, guess)
        parts = self._parts(ended, account, observed, used)
        model = parts.own[0][0]
        if model != account.concrete and not observed.switched and not self._pricer.is_alias(model):
            account.concrete = model
        extra = _extra_rows(observed, account, parts)
        shares: list[Share] = []
        for row in extra:
            shares += row.shares
        prices = Prices(self._pricer, ended.at, request_context(account, ended, observed.context, used))
        bill = _bill(account, parts.own, shares, used, increase, prices)
        if bill.ahead is not None:
            account.cost.book_ahead(bill.ahead)
        account.paid_otherwise, account.paid_perhaps = bill.instead, bill.perhaps
        note_context(account, ended, observed.context, used)
        rows = [self._extra_row(ended, account, row, bill, prices) for row in extra]
        if bill.unseen is not None:
            line = UsageLine(model, NOTHING, bill.unseen)
            why = "spent before the session was loaded here"
            rows.append(self._row(ended, account, "autonomous", (line,), "none", "agent", why))
        retried = "a retried stream, by the agent's rows" if parts.retried else ""
        hidden = _HIDDEN if _overpriced(account, bill) else ""
        detail = "; ".join(filter(None, (used.detail, retried, hidden, bill.detail)))
        source: UsageSource = "partial" if parts.mixed and used.source == "agent" else used.source
        rows.append(self._row(ended, account, ended.turn.kind, bill.lines, source, bill.source, detail, own=True))
        if increase.baseless:
            booked = summed(cost for row in rows for cost in row.costs) if bill.source != "agent" else ()
            account.cost.book_for_first(None if bill.by_user else booked)
        return rows

    def so_far(self, account: SessionAccount, at: int) -> ToldSoFar | None:
        """What is to be booked of the turn that runs should it never end. Changes nothing.

        None where the agent told no tokens of it, or will tell with a cost of its own: whoever goes on with the session
        books that cost, so that no price may stand in its place.
        """
        told = tokens_told(account) if account.open else None
        if told is None or not told.usage.total:
            return None
        shares = self._told_shares(account, told.usage)
        used = TurnUsage(told.usage, "partial", told.detail, told.certain)
        increase, prices = account.cost.so_far, Prices(self._pricer, at, context_so_far(account, told.usage))
        bill = _bill(account, shares, (), used, increase, prices)
        if bill.extra_paid and not increase.amounts:
            return None
        hidden = _HIDDEN if _overpriced(account, bill) else ""
        detail = "; ".join(filter(None, (used.detail, hidden, bill.detail)))
        return ToldSoFar(self._named(bill.lines), bill.source, detail)

    def named(self, model: str | None) -> str | None:
        """The model that an alias stands for, where that is known: a budget for a model is asked for that."""
        return self._pricer.concrete(model) or model

    def context_size(self, account: SessionAccount) -> int | None:
        """The window as the agent tells it, else the model's."""
        return account.context.size or self._pricer.window(account.model)

    def between_turns(
        self,
        account: SessionAccount,
        at: int,
        usage: Usage,
        increase: Increase,
        kind: Kind,
        why: str = "reported while no prompt ran",
        *,
        at_least: bool = False,
    ) -> Entry | None:
        """What was used while no prompt ran, or told after its turn had ended. None when that is nothing.

        `at_least`: it may have used more tokens.
        """
        model = account.model
        cost_source: CostSource = "estimated" if increase.unsure else "agent"
        source: UsageSource = "partial" if at_least else "agent"
        if increase.amounts:
            # Perhaps 0: then it is in rows that were presumed, and from this one on the ledger knows that it was told.
            first, *others = map(increase.beyond_presumed, increase.amounts)
            lines = (UsageLine(model, usage, first), *(UsageLine(model, NOTHING, other) for other in others))
        elif usage.total:
            lines, cost_source = computed_lines([(model, usage)], Prices(self._pricer, at, None))
        else:
            return None
        return Entry(
            id=self._new_id(at),
            session=account.session,
            kind=kind,
            started_at=at,
            ended_at=at,
            stop_reason=None,
            lines=self._named(lines),
            usage_source=source if usage.total else "none",
            cost_source=cost_source,
            detail=joined(why, increase.unsure),
            context_used=account.context.used,
            context_size=self.context_size(account),
        )

    def _parts(self, ended: TurnEnded, account: SessionAccount, observed: TurnObservations, used: TurnUsage) -> Spread:
        """The turn's usage by model. Guessed usage has nothing to do with the agent's rows.

        A model that is chosen while a turn runs is for the next one, unless no other is known, or each call is told.
        """
        model = self._concrete(observed.model, account)
        if used.by_model:
            return Spread(self._by_call(account, used.by_model))
        profile = account.profile
        if not ended.model_usage or used.source == "estimated" or used.repeated or profile.tokens.scope == "session":
            return Spread(((model, used.usage),))
        rows = read_rows(
            ended.model_usage, _as_read(profile.overlap, ended.counters, used.usage), self._pricer.is_alias
        )
        if profile.tokens.names_chosen and observed.switched and model and len(rows) == 1:
            rows = ((model.partition("[")[0], rows[0][1]),)  # rows name no effort
        return spread(used.usage, rows, model)

    def _told_shares(self, account: SessionAccount, usage: Usage) -> tuple[Share, ...]:
        """By model, with the subagents of a turn whose calls are told."""
        observed, model = account.observed, self._concrete(account.observed.model, account)
        calls = account.reader.calls_so_far
        if calls is None:
            return ((model, usage),)
        own = self._by_call(account, calls) or ((model, NOTHING),)
        return merged([*own, *((own[0][0], each) for each in _calls_of(observed.subagents))])

    def _by_call(self, account: SessionAccount, calls: Sequence[Share]) -> tuple[Share, ...]:
        return merged((self._concrete(name, account), usage) for name, usage in calls)

    def _extra_row(
        self, ended: TurnEnded, account: SessionAccount, row: _ExtraRow, bill: Bill, prices: Prices
    ) -> Entry:
        cost_source: CostSource = "parent"
        lines = unpaid_lines(row.shares)
        if not bill.extra_paid:
            lines, cost_source = computed_lines(row.shares, prices)
        return self._row(ended, account, row.kind, lines, row.source, cost_source, row.detail)

    def _row(
        self,
        ended: TurnEnded,
        account: SessionAccount,
        kind: Kind,
        lines: tuple[UsageLine, ...],
        usage_source: UsageSource,
        cost_source: CostSource,
        detail: str,
        *,
        own: bool = False,
    ) -> Entry:
        turn = ended.turn
        return Entry(
            id=turn.id if own else self._new_id(ended.at),
            session=account.session,
            kind=kind,
            started_at=ended.started_at,
            ended_at=ended.ended_at,
            stop_reason=ended.stop_reason if own else None,
            lines=self._named(lines),
            usage_source=usage_source,
            cost_source=cost_source,
            detail=detail,
            message_id=turn.message_id,
            context_used=account.context.used,
            context_size=self.context_size(account),
            work=ended.work if own else None,
        )

    def _concrete(self, model: str | None, account: SessionAccount) -> str | None:
        return account.model if model is None or self._pricer.is_alias(model) else model

    def _named(self, lines: tuple[UsageLine, ...]) -> tuple[UsageLine, ...]:
        return tuple([replace(line, model=self.named(line.model)) for line in lines])


def _bill(
    account: SessionAccount,
    own: Sequence[Share],
    beside: Sequence[Share],
    used: TurnUsage,
    increase: Increase,
    prices: Prices,
) -> Bill:
    return turn_bill(
        own,
        beside,
        used,
        increase,
        prices,
        told=account.agent_tells_cost,
        untold=account.may_tell_cost,
        saved_at_end="kill" in account.profile.cost.moves,
        hides_cache=account.profile.overlap.hides_cache,
    )


def _as_read(how: Overlap, told: Counters | None, usage: Usage) -> Overlap:
    """The overlap with how the turn's counters were read: rows without a total are read alike.

    What only rows tell apart is in what the turn's counters tell.
    """
    if how.input is not None or told is None:
        return how
    beside = bool(told.cached_read or told.cached_write) and usage.input == told.input
    counts: InputCounts = "excludes_cache" if beside else "includes_cache"
    inside = not told.thought or usage.output != told.output
    return replace(how, input=counts, thinking="inside" if inside else "beside")


def _overpriced(account: SessionAccount, bill: Bill) -> bool:
    if not account.profile.overlap.hides_cache or bill.source == "agent":
        return False
    return any(line.usage.input and line.cost and not line.usage.cached_read for line in bill.lines)


def _extra_rows(observed: TurnObservations, account: SessionAccount, parts: Spread) -> list[_ExtraRow]:
    """Subagents first; what is left of the agent's rows then are titles, and subagents that nobody named."""
    told = observed.subagents
    if not (parts.beside or told):  # most turns
        return []
    default = parts.own[0][0]
    subagents = [] if told is None else list(told.used(account.profile.overlap))
    rows = []
    for model, usage, complete in subagents:
        detail = "" if complete else "the last of several model calls"
        rows.append(_ExtraRow("subagent", ((model or default, usage),), "agent" if complete else "partial", detail))
    side = without(parts.beside, [(model, usage) for model, usage, _ in subagents])
    if side:
        rows.append(_ExtraRow("side", side, detail="titles, subagents and the like, beyond the turn's own calls"))
    return rows


def _calls_of(subagents: Subagents | None) -> Iterable[Usage]:
    return () if subagents is None else subagents.calls.values()
