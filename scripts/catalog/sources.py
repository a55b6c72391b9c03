"""The two price libraries, read into one shape: rows by name, each a list of dated steps. Decides nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files
from typing import Any

from genai_prices import data, types

from acp_proxy.core.models import canonical

FIELDS = ("input", "output", "cached_read", "cached_write", "cached_write_1h")

# Labs and gateways that are taken from each: its own name for one -> the catalog's.
GENAI_LABS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "google",
    "x-ai": "xai",
    "deepseek": "deepseek",
    "moonshotai": "moonshotai",
    "zai": "zai",
    "mistral": "mistral",
    "minimax": "minimax",
    "meta": "meta",
    "cohere": "cohere",
    "cursor": "cursor",
    "github-copilot": "github-copilot",
    "openrouter": "openrouter",
    "groq": "groq",
    "cerebras": "cerebras",
    "aws": "bedrock",
    "zhipuai": "zhipuai",
}
MODEL_PRICES_LABS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "google",
    "xai": "xai",
    "deepseek": "deepseek",
    "moonshotai": "moonshotai",
    "zai": "zai",
    "alibaba": "alibaba",
    "mistral": "mistral",
    "minimax": "minimax",
    "meta": "meta",
    "xiaomi": "xiaomi",
    "cursor": "cursor",
    "cognition": "cognition",
    "inception": "inception",
    "stepfun-ai": "stepfun",
    "tencent-tokenhub": "tencent",
    "byteplus": "bytedance",
    "poolside": "poolside",
    "longcat": "longcat",
    "bailing": "inclusionai",
    "thinkingmachines": "thinkingmachines",
    "sakana": "sakana",
    "sensenova": "sensenova",
    "upstage": "upstage",
    "arcee": "arcee",
    "cohere": "cohere",
    "perplexity": "perplexity",
    "ai21": "ai21",
    "nova": "amazon",
}

# OpenRouter sells hundreds; these are the labs whose models agents are run with.
OPENROUTER_LABS = frozenset(
    {"openai", "anthropic", "google", "x-ai", "deepseek", "moonshotai", "z-ai", "qwen", "mistralai", "minimax"}
    | {"meta", "xiaomi", "tencent", "stepfun"}
)

Rates = tuple[Decimal | None, ...]  # in the order of FIELDS, US dollars per million tokens


@dataclass(frozen=True)
class Step:
    since: datetime | None
    rates: Rates
    tiers: tuple[tuple[int, Rates], ...] = ()

    @property
    def prices(self) -> tuple[object, ...]:
        return (self.rates, self.tiers)


@dataclass(frozen=True)
class Row:
    steps: tuple[Step, ...]
    window: int | None = None
    also: frozenset[str] = frozenset()  # other names of the row, whole

    def at(self, moment: datetime) -> Step:
        return next(
            (step for step in reversed(self.steps) if step.since is None or step.since <= moment), self.steps[0]
        )


def genai_rows() -> dict[str, Row]:
    rows = {}
    for provider in data.providers:
        lab = GENAI_LABS.get(provider.id, "")
        for model in provider.models if lab else ():
            if lab == "openrouter" and model.id.partition("/")[0] not in OPENROUTER_LABS:
                continue
            name = _name(lab, model.id)
            steps = _genai_steps(model.prices)
            if steps:
                also = frozenset(_name(lab, text) for text in _equal_names(model.match)) - {name}
                rows[name] = Row(steps, model.context_window, also)
    return rows


def model_prices_rows() -> tuple[dict[str, Row], dict[str, Any]]:
    """The rows, and the rest of the snapshot: its date and its schedules."""
    snapshot = json.loads((files("model_prices") / "snapshot.json").read_bytes())
    rows = {}
    for provider, listed in snapshot["prices"].items():
        lab = MODEL_PRICES_LABS.get(provider, "")
        for model, modes in listed.items() if lab else ():
            rows[_name(lab, model)] = Row(tuple(_recorded_step(entry) for entry in modes["standard"] if entry["rates"]))
    for provider, bases in snapshot["bases"].items():  # the lab's name of a model, and the id that its API serves it as
        lab = MODEL_PRICES_LABS.get(provider, "")
        for base, served_as in bases.items() if lab else ():
            name, row = _name(lab, base), rows.get(_name(lab, served_as))
            if name not in rows and row:
                rows[_name(lab, served_as)] = replace(row, also=row.also | {name})
    for other, served_as in snapshot["aliases"]["models"].items():
        provider, _, model = served_as.partition("/")
        name = _name(MODEL_PRICES_LABS.get(provider, ""), model)
        if name in rows:
            rows[name] = replace(rows[name], also=rows[name].also | {_name(MODEL_PRICES_LABS[provider], other)})
    return rows, snapshot


def _name(lab: str, model: str) -> str:
    model = model.lower().removeprefix(f"{lab}/")
    if lab != "bedrock":
        return canonical(f"{lab}/{model}")
    model = re.sub(r"(?:-v\d+)?(?::\d+)?$", "", model)
    where = "global" if model.startswith("global.") else "regional"
    return canonical(f"bedrock-{where}/{model.removeprefix(f'{where}.')}")


def _genai_steps(prices: Any) -> tuple[Step, ...]:
    """Rules for hours of the day are left out: the schedules of model-prices have them, weekends included."""
    conditional = prices if isinstance(prices, list) else [types.ConditionalPrice(prices=prices)]
    steps = []
    for entry in conditional:
        if entry.constraint is None or isinstance(entry.constraint, types.StartDateConstraint):
            start = entry.constraint and entry.constraint.start_date
            since = datetime(start.year, start.month, start.day, tzinfo=UTC) if start else None
            step = _genai_step(since, entry.prices)
            if step:
                steps.append(step)
    return tuple(steps)


def _genai_step(since: datetime | None, prices: types.ModelPrice) -> Step | None:
    values = [
        prices.input_mtok,
        prices.output_mtok,
        prices.cache_read_mtok,
        prices.cache_write_mtok,
        prices.cache_write_1h_mtok,
    ]
    if values[0] is None or values[1] is None:
        return None
    starts = sorted({tier.start for value in values if isinstance(value, types.TieredPrices) for tier in value.tiers})
    tiers = tuple((start, tuple(_in_tier(value, start) for value in values)) for start in starts)
    return Step(since, tuple(_in_tier(value, 0) for value in values), tiers)


def _in_tier(value: Decimal | types.TieredPrices | None, start: int) -> Decimal | None:
    if not isinstance(value, types.TieredPrices):
        return value
    reached = [tier.price for tier in value.tiers if tier.start <= start]
    return reached[-1] if reached else value.base


def _equal_names(match: Any) -> set[str]:
    """Only names that are given whole: a prefix would give a new model an old one's price."""
    if isinstance(match, types.ClauseEquals):
        return {match.equals}
    if isinstance(match, types.ClauseOr):
        return {name for clause in match.or_ for name in _equal_names(clause)}
    return set()


def _recorded_step(entry: dict[str, Any]) -> Step:
    """A price that comes back after a discount keeps its first date in `valid_from`: `start` is when it holds again."""
    rates = entry["rates"]
    start = datetime.fromisoformat(entry["start"] or rates["valid_from"])
    noticed = rates["valid_from_basis"] != "documented" and entry["start"] in (None, rates["valid_from"])
    since = _day(start) if noticed else start.replace(second=0)
    multiple = rates.get("cache_write_1h_multiple")
    tiers = tuple((tier["above"], _rates({**rates, **tier}, multiple)) for tier in rates.get("tiers") or ())
    return Step(since, _rates(rates, multiple), tiers)


def _rates(rates: dict[str, Any], multiple: float | None) -> Rates:
    plain = [_decimal(rates.get(key)) for key in ("input", "output", "cache_read", "cache_write")]
    times, write = _decimal(multiple), plain[3]
    one_hour = plain[0] * times if plain[0] is not None and times and write else None
    return (*plain, one_hour)


def _decimal(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(repr(value)).normalize()


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0)
