"""`_meta.quota.model_usage`: a turn's usage by model, and what the agent spent beside it (titles, subagents)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.agents.profile import Overlap
from acp_proxy.core.events import ModelCounters
from acp_proxy.core.meter.counters import partition
from acp_proxy.core.money import Money
from acp_proxy.core.usage import NOTHING, Usage

Share = tuple[str | None, Usage]  # a model and what it used


class Spread(Struct, frozen=True):
    """`own` has at least one share, which may be of nothing; `beside` has only what is more than that."""

    own: tuple[Share, ...]
    beside: tuple[Share, ...] = ()
    retried: bool = False  # the usage was more than the rows

    @property
    def mixed(self) -> bool:
        """Whether the rows of one model tell less than the usage and more: what its calls in the turn used is no less.

        Its retried stream is not in them, but a title or a suggestion is.
        """
        return self.retried and bool({model for model, _ in self.own} & {model for model, _ in self.beside})


def read_rows(rows: Sequence[ModelCounters], how: Overlap, is_alias: Callable[[str | None], bool]) -> tuple[Share, ...]:
    """One share per model; that of an alias (`auto`) belongs to the concrete model beside it."""
    shares = merged((row.model, partition(row.counters, how).usage) for row in rows)
    if len(shares) < 2:
        return shares
    concrete = next((model for model, _ in shares if not is_alias(model)), None)
    return merged((concrete if concrete and is_alias(model) else model, usage) for model, usage in shares)


def spread(usage: Usage, rows: Sequence[Share], model: str | None) -> Spread:
    """A turn's usage over the rows, that of its main `model` first, then the largest.

    Rows that are larger hold more than the turn's own calls. Where they are smaller, a retried stream was counted
    twice in `usage`, and the rows are right; but what no row tells at all, they leave out.
    """
    if not rows:
        return Spread(((model, usage),))
    own, beside, left = [], [], usage
    ordered = _completed(sorted(rows, key=lambda row: (row[0] != model, -row[1].total)), usage)
    usage_tells, rows_tell = bool(usage.thought), any(row.thought for _, row in rows)
    for name, row in ordered:
        if rows_tell and not usage_tells:  # thinking apart, that is; else it is in the output
            left = _apart(left, row.thought)
        elif usage_tells and not rows_tell:
            row = _apart(row, left.thought)
        part = _least(row, left)
        left = left.minus(part)
        own.append((name, part))
        beside.append((name, row.minus(part)))
    return Spread(_something(own) or ((model or ordered[0][0], NOTHING),), _something(beside), bool(left.total))


def _completed(rows: Sequence[Share], usage: Usage) -> list[Share]:
    """The first row with what is in `usage` and in none of them: they do not tell it."""
    (model, first), *others = rows
    for counter in ("input", "cached_read", "cached_write"):
        if not any(getattr(row, counter) for _, row in rows):
            first = replace(first, **{counter: getattr(usage, counter)})
    if not any(row.completion for _, row in rows):
        first = replace(first, output=usage.output, thought=usage.thought)
    return [(model, first), *others]


def _apart(usage: Usage, thought: int) -> Usage:
    """With so much of what was written as thinking."""
    thought = min(thought, usage.completion)
    return replace(usage, output=usage.completion - thought, thought=thought)


def without(shares: Iterable[Share], spent: Iterable[Share]) -> tuple[Share, ...]:
    """What is left of `shares` when others of the same model, or of one not named, have been told apart."""
    left = list(shares)
    for model, usage in spent:
        for place, (name, share) in enumerate(left):
            if model is None or name == model:
                left[place] = (name, share.minus(usage))
                break
    return _something(left)


def merged(shares: Iterable[Share]) -> tuple[Share, ...]:
    """One share per model, in the order of the first ones."""
    sums: dict[str | None, Usage] = {}
    for model, usage in shares:
        sums[model] = sums.get(model, NOTHING) + usage
    return tuple(sums.items())


def _something(shares: Iterable[Share]) -> tuple[Share, ...]:
    return tuple(share for share in shares if share[1].total)


def _least(one: Usage, other: Usage) -> Usage:
    return Usage(
        min(one.input, other.input),
        min(one.cached_read, other.cached_read),
        min(one.cached_write, other.cached_write),
        min(one.output, other.output),
        min(one.thought, other.thought),
    )


def split(amount: Money, weights: Sequence[int]) -> list[Money]:
    """`amount` in proportion to `weights`, by largest remainder: the parts add up to it exactly."""
    total = sum(weights)
    if total <= 0:
        weights, total = [1, *[0] * (len(weights) - 1)], 1
    parts = [amount.nano * weight // total for weight in weights]
    largest = sorted(range(len(parts)), key=lambda place: -(amount.nano * weights[place] % total))
    for place in largest[: amount.nano - sum(parts)]:
        parts[place] += 1
    return [Money(nano, amount.currency) for nano in parts]


def weights_of(prices: Sequence[Money | None], usages: Sequence[Usage]) -> list[int]:
    """How lines of several models share one cost: by their prices where all are known, else by their tokens."""
    known = [price.nano for price in prices if price is not None]
    if len(known) == len(prices) and any(known):
        return known
    return [usage.total for usage in usages]
