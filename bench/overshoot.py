"""By how much a turn goes beyond what is left of a budget, for each recorded agent and each `on_exceed`.

`python -m bench.overshoot` replays the recordings through the real core and prints a table of `docs/budgets-proof.md`.

A quarter of what a turn of several model calls took was left, and nothing held. A stop counts at the update that causes
it: the calls that it proves had been made. `cancel` adds none to them, `deny_next_tool` those before the next request
for permission, and the one that answers the denial. What they took beyond the quarter is the overshoot, in multiples of
it: 3 is the whole turn. `proven` is the part of their price that was proven by tokens before a turn ended.
"""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, get_args
from zoneinfo import ZoneInfo

from acp_proxy.catalog import Catalog
from acp_proxy.core.budget import Budget, Limit, OnExceed, Standing, accounts_for
from acp_proxy.core.entry import Entry, Origin
from acp_proxy.core.events import ContextChanged, PermissionRequested, TurnEnded, TurnMetered, TurnStarted
from acp_proxy.core.meter import Meter
from acp_proxy.core.pricing import Priced
from acp_proxy.core.scope import Subject
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import Window
from acp_proxy.interceptors.budgets.client_messages import ClientMessages
from acp_proxy.interceptors.budgets.running_turns import Running, Turns
from acp_proxy.interceptors.budgets.stops import Stops
from harness.recordings import BEGIN, IN_PLACE, events_of, metered_by, told_in, truth_of

UNITS = ("USD", "tokens")
LEFT = 4  # the part of a turn that is left
_WHO = Origin("default", "alice", None, None, "laptop", "agent", None, None)
_LINE = "| {} | {} | {} | {} | {} | {} | {} |"


class Prices(Catalog):
    """The catalog's; a model that was made up for a recording costs what gpt-4o does.

    So does one that nobody named, but where all calls of the recording were of one model.
    """

    def __init__(self, recording: Path) -> None:
        super().__init__()
        used = {call["model"] for turn in truth_of(recording) for call in own(turn["calls"])}
        self._unnamed = used.pop() if len(used) == 1 else None

    def price(self, model: str | None, usage: Usage, at: int, context: int | None = None) -> Priced:
        named = model or self._unnamed or "gpt-4o"
        return super().price("gpt-4o" if "mock" in named else named, usage, at, context)


@dataclass(frozen=True, slots=True)
class Call:
    tokens: int
    nano: int

    @classmethod
    def of_truth(cls, truth: Mapping[str, Any], prices: Prices) -> Call:
        usage = Usage(**truth["tokens"])
        cost = prices.price(truth["model"], usage, BEGIN).cost
        return cls(usage.total, cost.nano if cost else 0)

    def of(self, unit: str) -> int:
        return self.tokens if unit == "tokens" else self.nano


@dataclass(slots=True)
class Stop:
    """What was told of a turn, in tokens: when it was stopped, and when a tool asked for permission after that."""

    told: int
    asked: int | None = None


def main() -> None:
    found: dict[str, dict[tuple[str, OnExceed], list[float]]] = defaultdict(lambda: defaultdict(list))
    parts: dict[str, list[float]] = defaultdict(list)
    for recording in IN_PLACE:
        parts[recording.parent.name] += proven(recording)
        for unit, on_exceed in itertools.product(UNITS, get_args(OnExceed)):
            found[recording.parent.name][unit, on_exceed] += overshoots(recording, unit, on_exceed)
    sys.stdout.write("\n".join(table(found, parts)) + "\n")


def table(
    found: Mapping[str, Mapping[tuple[str, OnExceed], Sequence[float]]], parts: Mapping[str, Sequence[float]]
) -> Iterator[str]:
    """The means, and in parentheses the most."""
    kinds: list[tuple[str, OnExceed]] = [(unit, on_exceed) for unit in UNITS for on_exceed in get_args(OnExceed)[1:]]
    yield _LINE.format("agent", "turns", "proven", *(f"`{on_exceed}`, {unit}" for unit, on_exceed in kinds))
    yield _LINE.format("---", *["--:"] * 6)
    for agent, measured in sorted(found.items()):
        cells = [measured[kind] for kind in kinds]
        if cells[0]:
            part = f"{min(parts[agent]):.0%}–{max(parts[agent]):.0%}" if any(parts[agent]) else "–"
            yield _LINE.format(agent, len(cells[0]), part, *(f"{mean(cell):.1f} ({max(cell):.1f})" for cell in cells))


def proven(recording: Path) -> Iterator[float]:
    """Which part of the price of each turn of several calls is proven by what the agent told before it ended."""
    prices = Prices(recording)
    turns = zip(told_in(recording), sorted(truth_of(recording), key=lambda turn: str(turn["session"])), strict=True)
    for (_, told), truth in turns:
        made = [Call.of_truth(call, prices) for call in own(truth["calls"])]
        if len(made) > 1:
            yield max((_at_least(each, prices) for each in told), default=0) / sum(call.nano for call in made)


def _at_least(told: ContextChanged, prices: Prices) -> int:
    """By the cheapest of the turn's models, as stops go by it."""
    costs = [prices.price(model, told.lower_bound, BEGIN).cost for model in (told.state.model, *told.left)]
    return min(cost.nano if cost else 0 for cost in costs)


def own(calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls that a turn made for itself, and was answered."""
    return [call for call in calls if call["kind"] == "main" and call["delivered"]]


def overshoots(recording: Path, unit: str, on_exceed: OnExceed) -> Iterator[float]:
    """Of each turn of several calls, in multiples of what was left."""
    prices = Prices(recording)
    turns = [event for event in events_of(recording) if isinstance(event, TurnStarted)]
    truth = sorted(truth_of(recording), key=lambda turn: str(turn["session"]))
    ids = [event.turn.id for event in sorted(turns, key=lambda event: event.session)]
    rows = {row.id: row for row in metered_by(prices, recording).rows}
    calls = {turn: list(_calls(each["calls"], rows[turn], prices)) for turn, each in zip(ids, truth, strict=True)}
    left = {turn: sum(call.of(unit) for call in made) // LEFT for turn, made in calls.items()}
    stops = replayed(recording, left, unit, on_exceed, prices)
    for turn, made in calls.items():
        if len(made) > 1 and left[turn]:
            spent = sum(call.of(unit) for call in made[: _went_on(made, stops.get(turn), on_exceed)])
            yield max(0, spent - left[turn]) / left[turn]


def replayed(
    recording: Path, left: Mapping[str, int], unit: str, on_exceed: OnExceed, prices: Prices
) -> dict[str, Stop]:
    """Where turns are stopped that have so much `left`, by their ids."""
    numbers = itertools.count(1)
    meter = Meter(prices, lambda _: f"row{next(numbers)}")
    turns = Turns()
    stops = Stops(turns, ClientMessages("message"), lambda *_: None, lambda *_: None, prices.price, lambda: BEGIN)
    told: dict[str, int] = {}
    found: dict[str, Stop] = {}
    for event in events_of(recording):
        for each in (event, *meter.on_event(event)):
            match each:
                case TurnStarted(session=session, turn=turn):
                    turns.add(_running(turn.id, session, left[turn.id], unit, on_exceed))
                    turns.start(turn.id)
                    stops.on_event(each)
                case TurnEnded():
                    stops.on_event(each)
                case TurnMetered(entry=entry):
                    turns.costs.hear(each)
                    if (ended := turns.get(entry.id)) is not None:
                        turns.end(ended)
                case ContextChanged(session=session, lower_bound=least, restored=restored):
                    turns.costs.hear(each)
                    running = turns.current(session)
                    if running is not None and not restored:
                        told[running.id] = max(told.get(running.id, 0), least.total)
                        if stops.judge(running, each):
                            found.setdefault(running.id, Stop(told[running.id]))
                case PermissionRequested(session=session):
                    running = turns.current(session)
                    if running is not None and running.id in found and found[running.id].asked is None:
                        found[running.id].asked = told[running.id]
    return found


def _running(turn: str, session: str, left: int, unit: str, on_exceed: OnExceed) -> Running:
    budget = Budget("left", "user", Window("turn"), Limit(left, unit), on_exceed=on_exceed)
    subject = Subject(_WHO.organisation, _WHO.user, None, None, _WHO.host, _WHO.agent, session=session)
    accounts = accounts_for([budget], subject, BEGIN, ZoneInfo, turn)
    return Running(turn, session, _WHO, None, accounts, BEGIN, tuple(map(Standing, accounts)))


def _calls(truth: Sequence[dict[str, Any]], row: Entry, prices: Prices) -> Iterator[Call]:
    """A turn's own calls; together they cost what the agent says, if it does."""
    made = [Call.of_truth(call, prices) for call in own(truth)]
    computed = sum(call.nano for call in made)
    booked = sum(cost.nano for cost in row.costs) if row.cost_source == "agent" else computed
    for call in made:
        yield Call(call.tokens, call.nano * booked // computed)


def _went_on(made: Sequence[Call], stop: Stop | None, on_exceed: OnExceed) -> int:
    """How many calls a turn had made in the end."""
    denies = on_exceed == "deny_next_tool"
    told = None if stop is None else stop.asked if denies else stop.told
    if not told:  # what the agent told of tokens places it nowhere before the end
        return len(made)
    sums = itertools.accumulate(call.tokens for call in made)
    proven = next((number for number, tokens in enumerate(sums, 1) if tokens >= told), len(made))
    return proven + 1 if denies else proven


if __name__ == "__main__":
    main()
