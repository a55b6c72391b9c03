"""Metrics of tokens, money and turns, from what a ledger adds up to since it began. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from acp_proxy.ledger.tallied import Whole
from acp_proxy.ledger.tallies import EXPECTED
from acp_proxy.metrics.exposition import Family, Values
from acp_proxy.metrics.readings import Readings

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


def spend(readings: Readings) -> Iterator[Family]:
    """Series that can be foreseen are there with 0, so that `increase()` sees what comes first."""
    tokens, cost, unpriced = dict[Values, int](), dict[Values, int](), dict[Values, int]()
    turns, without_usage = dict[Values, int](), dict[Values, int]()
    _foresee(readings, tokens, unpriced, turns, without_usage)
    labels, by = readings.labels, readings.by
    for whole in readings.wholes:
        key = tuple([labels.of(name, value) for name, value in zip(by, whole.key, strict=True)])
        agent, model, team, *_ = key
        _add_tokens(tokens, key, whole)
        unpriced.setdefault((agent, model), 0)
        if whole.currency is not None:
            paid = (*key, labels.of("currency", whole.currency), whole.cost_source)
            cost[paid] = cost.get(paid, 0) + whole.nano
        elif whole.cost_source != "parent":
            unpriced[agent, model] += (
                whole.input + whole.cached_read + whole.cached_write + whole.output + whole.thought
            )
        ended = (agent, team, *key[3:], whole.kind, labels.of("stop_reason", whole.stop_reason))
        turns[ended] = turns.get(ended, 0) + whole.rows
        without_usage.setdefault((agent,), 0)
        if whole.usage_source == "none":
            without_usage[(agent,)] += whole.rows
    _foresee_costs(readings, tokens, cost)
    of = ("agent", "model", "team", *by[3:])
    yield Family("acp_proxy_tokens_total", "counter", _TOKENS, (*of, "source", "type"), tokens.items())
    yield Family("acp_proxy_cost_total", "counter", _COST, (*of, "currency", "source"), cost.items(), nano=True)
    yield Family("acp_proxy_unpriced_tokens_total", "counter", _UNPRICED, ("agent", "model"), unpriced.items())
    yield Family(
        "acp_proxy_turns_total", "counter", _TURNS, ("agent", "team", *by[3:], "kind", "stop_reason"), turns.items()
    )
    yield Family("acp_proxy_turns_without_usage_total", "counter", _WITHOUT_USAGE, ("agent",), without_usage.items())


_TOKENS = (
    "Tokens of all rows, a disjoint partition by type. source is who counted: agent, partial (at least), estimated."
)
_COST = "Cost of all rows in units of the currency. source is where the price is from: agent, computed, estimated."
_UNPRICED = "Tokens whose price is unknown."
_TURNS = "Rows of the ledger; kind turn is a prompt, the others are work without one."
_WITHOUT_USAGE = "Rows of which nobody said or could estimate what they used."


def _add_tokens(tokens: dict[Values, int], key: Values, whole: Whole) -> None:
    for kind, number in zip(TYPES, whole[6:11], strict=True):
        series = (*key, whole.usage_source, kind)
        tokens[series] = tokens.get(series, 0) + number


def _foresee(
    readings: Readings,
    tokens: dict[Values, int],
    unpriced: dict[Values, int],
    turns: dict[Values, int],
    without_usage: dict[Values, int],
) -> None:
    labels, plain = readings.labels, len(readings.by) == 3
    pairs = {(agent, labels.of("team", readings.team)) for agent in readings.agents}
    for tally in readings.tallies:
        if tally.family == EXPECTED:
            agent, team, model = tally.labels
            key = (labels.of("agent", agent), labels.of("model", model), labels.of("team", team))
            pairs.add((key[0], key[2]))
            if plain and model is not None:
                tokens.update({(*key, "agent", kind): 0 for kind in TYPES})
                unpriced[key[0], key[1]] = 0
    pairs |= {(labels.of("agent", whole.key[0]), labels.of("team", whole.key[2])) for whole in readings.wholes if plain}
    for agent, team in sorted(pairs):
        without_usage[(agent,)] = 0
        if plain:
            turns.update({(agent, team, "turn", reason): 0 for reason in STOP_REASONS})
            turns.update({(agent, team, kind, "none"): 0 for kind in _OTHER_KINDS})


def _foresee_costs(readings: Readings, tokens: dict[Values, int], cost: dict[Values, int]) -> None:
    """An agent's costs are of the same sources and currencies with each of its models."""
    width = len(readings.by)
    paid: dict[str, dict[Values, None]] = {}
    for series in cost:
        paid.setdefault(series[0], {})[series[width:]] = None
    for key in dict.fromkeys(series[:width] for series in tokens):
        for source in paid.get(key[0], {("USD", "computed"): None}):
            cost.setdefault((*key, *source), 0)
