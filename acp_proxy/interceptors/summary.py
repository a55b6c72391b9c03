"""What was used since the relay began, by model and kind, for stderr at its end. Writes nothing itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Entry
from acp_proxy.core.events import Event, TurnMetered
from acp_proxy.core.money import Money, summed
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.figures import aligned, clean, cost_text, cut, decimals_of, tokens_text
from acp_proxy.interceptor import Interceptor

_HEADER = ("model", "kind", "turns", "prompt", "completion", "total", "cost")
_RIGHT = (False, False, True, True, True, True, True)
_LONGEST_MODEL = 40


@dataclass(frozen=True, slots=True)
class _Sum:
    turns: int = 0
    usage: Usage = NOTHING
    costs: tuple[Money, ...] = ()
    incomplete: bool = False  # a price or a part of the usage is not known

    def plus(self, other: _Sum) -> _Sum:
        return _Sum(
            self.turns + other.turns,
            self.usage + other.usage,
            summed((*self.costs, *other.costs)),
            self.incomplete or other.incomplete,
        )


class Summary(Interceptor):
    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], _Sum] = {}
        self._total = _Sum()

    def on_event(self, event: Event) -> Iterable[Effect]:
        if isinstance(event, TurnMetered):
            self._add(event.entry)
        return ()

    def render(self) -> str:
        """A table with a line for each model and kind, and their total; empty when there was no turn."""
        if not self._sums:
            return ""
        decimals = decimals_of(self._total.costs)
        lines: list[tuple[str, ...]] = [_HEADER]
        for (model, kind), total in sorted(self._sums.items(), key=lambda item: -item[1].usage.total):
            lines.append(_cells(cut(model, _LONGEST_MODEL), kind, total, decimals))
        if len(self._sums) > 1:
            lines.append(_cells("total", "", self._total, decimals))
        return aligned(lines, _RIGHT)

    def _add(self, entry: Entry) -> None:
        """A turn of several models counts once for each of them, and once in the total."""
        for line in entry.lines:
            key = clean(line.model or "unknown"), entry.kind
            costs = () if line.cost is None else (line.cost,)
            part = _Sum(1, line.usage, costs, entry.cost_at_least)
            self._sums[key] = self._sums.get(key, _Sum()).plus(part)
            self._total = self._total.plus(replace(part, turns=0))
        self._total = replace(self._total, turns=self._total.turns + 1)


def _cells(model: str, kind: str, total: _Sum, decimals: int) -> tuple[str, ...]:
    usage = total.usage
    counts = [tokens_text(count) for count in (total.turns, usage.prompt, usage.completion, usage.total)]
    return (model, kind, *counts, cost_text(total.costs, decimals, at_least=total.incomplete))
