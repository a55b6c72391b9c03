"""Metrics of tokens, money and turns, from what a ledger adds up to since it began. Pure.

Between scrapes is kept what does not change: to which samples a series of the ledger adds, and how these are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from acp_proxy.core.money import NANO
from acp_proxy.core.scope import PLAN
from acp_proxy.ledger.sums.tallied import Dimensions, Whole
from acp_proxy.ledger.sums.tallies import EXPECTED
from acp_proxy.metrics.exposition import Values, Written, start_of
from acp_proxy.metrics.labels import Labels
from acp_proxy.metrics.readings import Readings

_ALWAYS = ("agent", "model", "team")  # labels that tell tokens and costs apart, whatever else does
TYPES = ("input", "cached_read", "cached_write", "output", "thought")
STOP_REASONS = (
    "end_turn",
    "max_tokens",
    "max_turn_requests",
    "refusal",
    "cancelled",
    "error",
    "crashed",
    "disconnected",
)
_OTHER_KINDS = ("autonomous", "subagent", "compaction", "side")
_FORESEEN_COST = ("USD", "computed")  # of an agent that had none yet


class _Places(NamedTuple):
    """Where the numbers of a series are added."""

    tokens: int  # the first of `TYPES`
    cost: int | None
    unpriced: int | None
    turns: int
    without_usage: int | None
    not_billed: int | None


class _Samples:
    """The samples of a family, in the order of their first appearance."""

    def __init__(self, name: str, help: str, labels: tuple[str, ...], *, nano: bool = False) -> None:
        self._name, self._help, self._labels, self._nano = f"acp_proxy_{name}", help, labels, nano
        self._places: dict[Values, int] = {}
        self._starts: list[str] = []

    def place(self, values: Values) -> int:
        found = self._places.setdefault(values, len(self._starts))
        if found == len(self._starts):
            self._starts.append(start_of(self._name, self._labels, values))
        return found

    def zeros(self) -> list[int]:
        return [0] * len(self._starts)

    def family(self, numbers: list[int]) -> Written:
        return Written(
            self._name,
            "counter",
            self._help,
            self._starts,
            numbers,
            nano=self._nano,
            labels=self._labels,
            values=self._places.keys(),  # in the order of their places
        )


class Spend:
    """For one ledger. Series that can be foreseen are there with 0, so that `increase()` sees what comes first.

    `more` are labels beside agent, model and team: "user", "project". With any of them only what has a row is there.
    What it shows depends on its readings alone, not on those before.
    """

    def __init__(self, more: tuple[str, ...]) -> None:
        self._more = more
        self._begin()

    def families(self, readings: Readings) -> Iterator[Written]:
        self._learn(readings)
        tokens, cost, unpriced = self._tokens.zeros(), self._cost.zeros(), self._unpriced.zeros()
        turns, without_usage = self._turns.zeros(), self._without_usage.zeros()
        not_billed = self._not_billed.zeros()
        for whole in readings.wholes:
            at = self._places.get(whole.series)
            if at is None:  # of a series that is not in the ledger: its labels are unknown
                continue
            place = at.tokens
            tokens[place] += whole.input
            tokens[place + 1] += whole.cached_read
            tokens[place + 2] += whole.cached_write
            tokens[place + 3] += whole.output
            tokens[place + 4] += whole.thought
            turns[at.turns] += whole.rows
            if at.cost is not None:
                cost[at.cost] += whole.units * NANO + whole.nano
            if at.not_billed is not None:
                not_billed[at.not_billed] += whole.units * NANO + whole.nano
            if at.unpriced is not None:
                unpriced[at.unpriced] += whole.tokens
            if at.without_usage is not None:
                without_usage[at.without_usage] += whole.most_rows
        yield self._tokens.family(tokens)
        yield self._cost.family(cost)
        yield self._not_billed.family(not_billed)
        yield self._unpriced.family(unpriced)
        yield self._turns.family(turns)
        yield self._without_usage.family(without_usage)

    def _begin(self) -> None:
        by, more = (*_ALWAYS, *self._more), self._more
        self._tokens = _Samples("tokens_total", _TOKENS, (*by, "source", "type"))
        self._cost = _Samples("cost_total", _COST, (*by, "currency", "source"), nano=True)
        self._not_billed = _Samples("cost_not_billed_total", _NOT_BILLED, ("agent", "currency"), nano=True)
        self._unpriced = _Samples("unpriced_tokens_total", _UNPRICED, ("agent", "model"))
        self._turns = _Samples("turns_total", _TURNS, ("agent", "team", *more, "kind", "stop_reason"))
        self._without_usage = _Samples("turns_without_usage_total", _WITHOUT_USAGE, ("agent",))
        self._places: dict[str, _Places] = {}
        self._keys: dict[Values, None] = {}  # agent, model, team … that have tokens
        self._paid: dict[str, dict[Values, None]] = {}  # currencies and sources of an agent's costs
        self._foreseen = 0  # expected series that were seen

    def _learn(self, readings: Readings) -> None:
        """Places of series that are new, and of what they let foresee."""
        expected = [tally.labels for tally in readings.tallies if tally.family == EXPECTED and len(tally.labels) == 3]
        known = readings.series
        new = [whole for whole in readings.wholes if whole.series not in self._places and whole.series in known]
        if not new and self._places and len(expected) == self._foreseen:
            return
        if self._first_costs(new, readings):
            self._begin()
            new = [whole for whole in readings.wholes if whole.series in known]
        self._foreseen = len(expected)
        for whole in new:
            self._places[whole.series] = self._placed(known[whole.series], readings.labels)
        self._foresee(readings, expected)
        for key in self._keys:
            for source in self._paid.get(key[0], (_FORESEEN_COST,)):
                self._cost.place((*key, *source))

    def _first_costs(self, new: Iterable[Whole], readings: Readings) -> bool:
        """Whether an agent has a cost now that had none: what was foreseen of it is void."""
        found = (readings.series[whole.series] for whole in new)
        paid = {readings.labels.of("agent", each.agent) for each in found if each.currency is not None}
        return any(agent not in self._paid for agent in paid)

    def _placed(self, series: Dimensions, labels: Labels) -> _Places:
        key = tuple([labels.of(name, getattr(series, name)) for name in (*_ALWAYS, *self._more)])
        agent, model, team, *more = key
        self._keys[key] = None
        unpriced, without_usage = self._unpriced.place((agent, model)), self._without_usage.place((agent,))
        cost = not_billed = None
        if series.currency is not None:
            source = (labels.of("currency", series.currency), series.cost_source)
            self._paid.setdefault(agent, {})[source] = None
            cost = self._cost.place((*key, *source))
            not_billed = self._not_billed.place((agent, source[0]))  # also of what is billed: a 0 before the first
        reason = labels.of("stop_reason", series.stop_reason)
        return _Places(
            tokens=self._place_tokens(key, series.usage_source),
            cost=cost,
            unpriced=unpriced if cost is None and series.cost_source != "parent" else None,
            turns=self._turns.place((agent, team, *more, series.kind, reason)),
            without_usage=without_usage if series.usage_source == "none" else None,
            not_billed=not_billed if series.billing == PLAN else None,
        )

    def _place_tokens(self, key: Values, source: str) -> int:
        """The place of the first type; the others follow, for they all come at once."""
        first, *_ = [self._tokens.place((*key, source, kind)) for kind in TYPES]
        return first

    def _foresee(self, readings: Readings, expected: Iterable[tuple[str | None, ...]]) -> None:
        labels, plain = readings.labels, not self._more
        pairs = {(agent, labels.of("team", readings.team)) for agent in readings.agents}
        for agent, team, model in expected:
            key = (labels.of("agent", agent), labels.of("model", model), labels.of("team", team))
            pairs.add((key[0], key[2]))
            if plain and model is not None:
                self._keys[key] = None
                self._place_tokens(key, "agent")
                self._unpriced.place(key[:2])
        if plain:
            pairs |= {(key[0], key[2]) for key in self._keys}
        for shown, of_team in sorted(pairs):
            self._without_usage.place((shown,))
            if plain:
                for reason in STOP_REASONS:
                    self._turns.place((shown, of_team, "turn", reason))
                for kind in _OTHER_KINDS:
                    self._turns.place((shown, of_team, kind, "none"))


_TOKENS = (
    "Tokens of all rows, a disjoint partition by type. source is who counted: agent, partial (at least), estimated."
)
_COST = "Cost of all rows in units of the currency. source is where the price is from: agent, computed, estimated."
_UNPRICED = "Tokens whose price is unknown."
_TURNS = "Rows of the ledger; kind turn is a prompt, the others are work without one."
_WITHOUT_USAGE = "Rows whose usage was neither reported nor estimated."
_NOT_BILLED = "Of the cost what was used under a plan, at list prices: nobody is billed it."
