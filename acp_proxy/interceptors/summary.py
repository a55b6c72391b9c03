"""The summary at the end of a relay: usage by model and kind. Renders text; writes nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Billing, Entry, UsageLine
from acp_proxy.core.events import Event, Initialized, PlanReported, TurnMetered
from acp_proxy.core.money import Money
from acp_proxy.core.plans import billed_as
from acp_proxy.core.scope import PLAN
from acp_proxy.core.usage import NOTHING
from acp_proxy.interceptor import Interceptor
from acp_proxy.text.figures import aligned, clean, cost_text, cut, decimals_of, tokens_text

_HEADER = ("model", "kind", "turns", "prompt", "completion", "total", "cost")
_RIGHT = (False, False, True, True, True, True, True)
_LONGEST_MODEL = 40


class _Sum:
    """Added to in place: it is done while a turn's last line waits."""

    __slots__ = ("costs", "incomplete", "turns", "usage")

    def __init__(self) -> None:
        self.turns = 0
        self.usage = NOTHING
        self.costs: dict[str, int] = {}  # nano-units by currency
        self.incomplete = False  # a price or a part of the usage is not known

    def add(self, line: UsageLine, *, incomplete: bool) -> None:
        self.usage += line.usage
        self.incomplete = self.incomplete or incomplete
        if line.cost is not None:
            self.costs[line.cost.currency] = self.costs.get(line.cost.currency, 0) + line.cost.nano

    def plus(self, other: _Sum) -> None:
        """Adds all but the turns: one that used two models is in two sums."""
        self.usage += other.usage
        self.incomplete = self.incomplete or other.incomplete
        for currency, nano in other.costs.items():
            self.costs[currency] = self.costs.get(currency, 0) + nano

    @property
    def amounts(self) -> tuple[Money, ...]:
        return tuple(Money(nano, currency) for currency, nano in self.costs.items())


class Summary(Interceptor):
    """`billing_of` says how an agent is billed by the configuration, None where that says nothing."""

    event_types = frozenset({Initialized, PlanReported, TurnMetered})

    def __init__(self, agent: str = "", billing_of: Callable[[str], Billing | None] = lambda _: None) -> None:
        self._agent = agent
        self._billing_of = billing_of
        self._billing = billing_of(agent)
        self._listed = _Sum()  # what a plan covers
        self._sums: dict[tuple[str, str], _Sum] = {}  # by model and kind
        self._turns = 0

    def on_event(self, event: Event) -> Iterable[Effect]:
        match event:
            case TurnMetered(entry=entry):
                self._turns += entry.kind == "turn"
                self._add(entry)
            case PlanReported(windows=windows):
                self._billing = billed_as(windows)
            case Initialized(agent=agent):
                self._billing = self._billing_of(self._agent or agent.name or "")
        return ()

    def render(self) -> str:
        """A table with a line for each model and kind, and their total; empty when there was no turn."""
        if not self._sums:
            return ""
        whole = self._total()
        decimals = decimals_of(whole.amounts)
        lines: list[tuple[str, ...]] = [_HEADER]
        for (model, kind), total in sorted(self._sums.items(), key=lambda item: -item[1].usage.total):
            lines.append(_cells(cut(clean(model), _LONGEST_MODEL), kind, total, decimals))
        if len(self._sums) > 1:
            lines.append(_cells("total", "", whole, decimals))
        return aligned(lines, _RIGHT) + self._note(decimals)

    def _note(self, decimals: int) -> str:
        if not self._listed.costs:
            return ""
        return f"list price, not billed: {cost_text(self._listed.amounts, decimals, column=False)} under a plan\n"

    def _add(self, entry: Entry) -> None:
        """A turn of several models counts once for each, in whatever currencies; work beside turns is no turn."""
        incomplete, counted = entry.cost_at_least, set[str | None]()
        for line in entry.lines:
            key = line.model or "unknown", entry.kind
            total = self._sums.get(key)
            if total is None:
                total = self._sums[key] = _Sum()
            total.turns += entry.kind == "turn" and line.model not in counted
            counted.add(line.model)
            total.add(line, incomplete=incomplete)
            if self._billing == PLAN:
                self._listed.add(line, incomplete=incomplete)

    def _total(self) -> _Sum:
        whole = _Sum()
        whole.turns = self._turns
        for each in self._sums.values():
            whole.plus(each)
        return whole


def _cells(model: str, kind: str, total: _Sum, decimals: int) -> tuple[str, ...]:
    usage = total.usage
    counts = [tokens_text(count) for count in (total.turns, usage.prompt, usage.completion, usage.total)]
    return (model, kind, *counts, cost_text(total.amounts, decimals, at_least=total.incomplete))
