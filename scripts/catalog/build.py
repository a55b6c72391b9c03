"""The catalog out of its two sources and the decisions: merged, compared, and written one row a line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from importlib.metadata import version
from typing import Any

from acp_proxy.core import models
from catalog.sources import FIELDS, Rates, Row, Step, genai_rows, model_prices_rows
from catalog.writing import decimal_text, written

HISTORY_FROM = datetime(2026, 7, 1, tzinfo=UTC)  # older prices are of no use: a settled row is never priced again
REGIONAL = Decimal("1.1")

# As the catalog names its sources.
GENAI = f"genai-prices {version('genai-prices')}"
MODEL_PRICES = f"model-prices {version('model-prices')}"


class DisagreementError(Exception):
    """The sources contradict each other, or a decision is about nothing; the text says where."""


@dataclass
class Decisions:
    """decisions.toml. Each entry that does nothing is a complaint, so that the file stays as short as it can be."""

    content: dict[str, Any]
    complaints: list[str] = field(default_factory=list)
    used: set[int] = field(default_factory=set)

    def about(self, kind: str, name: str) -> list[dict[str, Any]]:
        found = [
            entry for entry in self.content.get(kind, ()) if any(fnmatchcase(name, glob) for glob in entry["rows"])
        ]
        self.used.update(map(id, found))
        return found

    def unused(self) -> Iterable[str]:
        for kind in ("omit", "boundary", "take", "unset", "window"):
            for entry in self.content.get(kind, ()):
                if id(entry) not in self.used:
                    yield f"decisions.toml: {kind} {entry['rows']}: nothing to decide any more"


def catalog_text(decided: str) -> str:
    """`decided` is the text of decisions.toml. Raises DisagreementError."""
    decisions = Decisions(tomllib.loads(decided))
    genai = {name: row for name, row in genai_rows().items() if not decisions.about("omit", name)}
    recorded, snapshot = model_prices_rows()
    recorded = {
        name: _bounded(name, row, decisions) for name, row in recorded.items() if not decisions.about("omit", name)
    }
    as_of = datetime.fromisoformat(snapshot["updated_at"])

    rows: dict[str, tuple[Row, str]] = {}
    by_name = {also: name for name, row in genai.items() for also in row.also} | {name: name for name in genai}
    for name, row in recorded.items():
        other = by_name.get(name)
        rows[name] = (row, MODEL_PRICES) if other is None else _merged(name, row, genai[other], as_of, decisions)
    for name, row in genai.items():
        rows.setdefault(name, (row, GENAI))
    for name, better in decisions.content.get("rename", {}).items():
        rows[better] = rows.pop(name)
    rows = {name: found for name, found in rows.items() if _is_wanted(name, found[0])}

    rows = {name: (_unset(name, row, decisions), source) for name, (row, source) in rows.items()}
    for entry in decisions.content.get("row", ()):
        rows[entry["name"]] = (_own_row(entry), entry["source"])
    rows = {name: (replace(row, steps=_recent(row.steps)), source) for name, (row, source) in rows.items()}
    rows = {name: (_with_window(row, name, genai, decisions), source) for name, (row, source) in rows.items()}
    aliases = _aliases(rows, genai, decisions)
    rows |= _regional_claude(rows, genai, decisions)
    decisions.complaints += _shared_names(rows, aliases) + list(decisions.unused())
    if decisions.complaints:
        raise DisagreementError("\n".join(sorted(decisions.complaints)))
    return written(rows, aliases, decisions.content["date"], snapshot)


def _merged(name: str, ours: Row, theirs: Row, as_of: datetime, decisions: Decisions) -> tuple[Row, str]:
    """model-prices has the history, genai-prices the windows and what is announced; what one lacks, the other fills."""
    later = tuple(step for step in theirs.steps if step.since and step.since > as_of)
    for moment in _moments(theirs, as_of):
        differences = _differences(ours.at(moment), theirs.at(moment))
        if not differences:
            continue
        match decisions.about("take", name):
            case [{"take": "genai-prices"}]:
                return replace(theirs, also=theirs.also | ours.also), GENAI
            case [{"take": "model-prices"}]:
                return replace(ours, window=theirs.window), MODEL_PRICES
        decisions.complaints.append(f"{name} on {moment:%Y-%m-%d}: {'; '.join(differences)}")
    now = theirs.at(as_of)
    filled = tuple(_filled(step, now) if step is ours.steps[-1] else step for step in ours.steps)
    return Row(filled + later, theirs.window, ours.also), f"{GENAI}, {MODEL_PRICES}"


def _is_wanted(name: str, row: Row) -> bool:
    """Not what is free today: 0 is what a source says when it does not know, or while a model is introduced.

    Nor Claude on Bedrock, which is the lab's list price or computed from it.
    """
    return any(row.steps[-1].rates[:2]) and not name.startswith(
        ("bedrock-global/anthropic.", "bedrock-regional/anthropic.")
    )


def _moments(theirs: Row, as_of: datetime) -> Iterable[datetime]:
    """When both are asked: today, and a day and a half before and after each change that genai-prices knows of.

    A change takes effect at midnight somewhere, and model-prices often dates it by the hour: that is no disagreement.
    """
    yield as_of
    margin = timedelta(hours=36)
    for step in theirs.steps:
        if step.since and HISTORY_FROM <= step.since < as_of - margin:
            yield step.since - margin
            yield step.since + margin


def _differences(ours: Step, theirs: Step) -> list[str]:
    found = _different_rates(ours.rates, theirs.rates)
    if [above for above, _ in ours.tiers] != [above for above, _ in theirs.tiers]:
        return [*found, f"tiers {[above for above, _ in ours.tiers]} / {[above for above, _ in theirs.tiers]}"]
    for (above, rates), (_, others) in zip(ours.tiers, theirs.tiers, strict=True):
        found += [f"above {above} {text}" for text in _different_rates(rates, others)]
    return found


def _different_rates(ours: Rates, theirs: Rates) -> list[str]:
    return [
        f"{name} {decimal_text(a)} (model-prices) / {decimal_text(b)} (genai-prices)"
        for name, a, b in zip(FIELDS, ours, theirs, strict=True)
        if a is not None and b is not None and a != b
    ]


def _filled(ours: Step, theirs: Step) -> Step:
    def fill(rates: Rates, others: Rates) -> Rates:
        return tuple(b if a is None else a for a, b in zip(rates, others, strict=True))

    tiers = tuple((above, fill(rates, dict(theirs.tiers).get(above, rates))) for above, rates in ours.tiers)
    return Step(ours.since, fill(ours.rates, theirs.rates), tiers)


def _bounded(name: str, row: Row, decisions: Decisions) -> Row:
    """With the tier's threshold as the provider words it."""
    above = {entry["recorded"]: entry["above"] for entry in decisions.about("boundary", name)}
    steps = (replace(step, tiers=tuple((above.get(at, at), rates) for at, rates in step.tiers)) for step in row.steps)
    return replace(row, steps=tuple(steps))


def _unset(name: str, row: Row, decisions: Decisions) -> Row:
    """Without the rates that a decision takes away, and without free caches: models.dev's 0 means no price."""
    gone = {FIELDS.index(entry["field"]) for entry in decisions.about("unset", name)}

    def clean(rates: Rates) -> Rates:
        return tuple(None if i in gone or (i >= 2 and not rate) else rate for i, rate in enumerate(rates))

    steps = (Step(s.since, clean(s.rates), tuple((above, clean(rates)) for above, rates in s.tiers)) for s in row.steps)
    return replace(row, steps=tuple(steps))


def _own_row(entry: dict[str, Any]) -> Row:
    def rates(values: dict[str, str]) -> Rates:
        return tuple(Decimal(values[name]) if name in values else None for name in FIELDS)

    steps = []
    for step in entry["steps"]:
        since = datetime.fromisoformat(step["since"]).replace(tzinfo=UTC) if "since" in step else None
        tiers = tuple((tier["above"], rates(tier)) for tier in step.get("tiers", ()))
        steps.append(Step(since, rates(step), tiers))
    return Row(tuple(steps), entry.get("window"))


def _recent(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Without repetitions, and without what was over when the history begins."""
    kept: list[Step] = []
    for step in steps:
        if not any(step.rates[:2]):
            continue  # nothing is free: that was the price before there was one
        if kept and step.since and kept[-1].since == step.since:
            kept.pop()  # noticed on the same day, and it never holds
        if kept and kept[-1].prices == step.prices:
            continue
        if kept and step.since and step.since <= HISTORY_FROM:
            kept.clear()
        kept.append(step)
    return tuple(kept)


def _with_window(row: Row, name: str, genai: dict[str, Row], decisions: Decisions) -> Row:
    """A window comes from a decision, the row itself, or the same model at OpenRouter or Zhipu."""
    decided = [entry["tokens"] for entry in decisions.about("window", name)]
    lab, _, model = name.partition("/")
    prefixes = [prefix for prefix, known in models.LAB_OF_PREFIX.items() if known == lab]
    names = [*(f"openrouter/{prefix}/{model}" for prefix in prefixes), *([f"zhipuai/{model}"] if lab == "zai" else [])]
    windows = (genai[name].window for name in names if name in genai)
    return replace(row, window=next(iter(decided), row.window) or next((window for window in windows if window), None))


def _aliases(rows: dict[str, tuple[Row, str]], genai: dict[str, Row], decisions: Decisions) -> dict[str, str]:
    """Other names of labs' rows. Rows that only repeat another under a dated name go, and so do renamed ones."""

    def same(name: str, other: str) -> bool:
        return [step.prices for step in rows[name][0].steps] == [step.prices for step in rows[other][0].steps]

    aliases = dict(decisions.content.get("aliases", {}))
    for name in rows:
        also_given = (genai[name].also if name in genai else frozenset()) | rows[name][0].also
        for also in sorted(also_given - {name}):
            if name.partition("/")[0] not in models.LABS or also.count("/") != 1 or decisions.about("omit", also):
                continue
            if also not in rows:
                aliases.setdefault(also, name)
    for name in list(rows):
        others = (_end(row, aliases) for row in models.row_names(name) if row != name)
        undated = next((row for row in others if row in rows and row != name), None)
        if name in aliases or (undated is not None and same(name, undated)):
            del rows[name]
    return {
        also: _end(name, aliases)
        for also, name in aliases.items()
        if _end(name, aliases) in rows and next((row for row in models.row_names(also) if row in rows), None) is None
    }


def _end(name: str, aliases: dict[str, str]) -> str:
    while name in aliases:
        name = aliases[name]
    return name


def _regional_claude(
    rows: dict[str, tuple[Row, str]], genai: dict[str, Row], decisions: Decisions
) -> dict[str, tuple[Row, str]]:
    """Amazon Bedrock's regional endpoints: 110 % of the list price, checked against the rows that genai-prices has."""
    found = {}
    for name, (row, source) in rows.items():
        lab, _, model = name.partition("/")
        if lab == "anthropic" and models.costs_more_by_region(model):
            regional = replace(row, steps=tuple(_dearer(step) for step in row.steps))
            found[f"bedrock-regional/{model}"] = (regional, f"{source}: list price + 10 %")
    for name, row in genai.items():
        bedrock, _, model = name.partition("/")
        names = models.row_names(f"us.{model}") if bedrock == "bedrock-regional" and "anthropic." in model else ()
        ours = next((found[name][0] for name in names if name in found), None)
        if ours and (differences := _different_rates(ours.steps[-1].rates, row.steps[-1].rates)):
            decisions.complaints.append(f"{name}: {'; '.join(differences)}")
    return found


def _dearer(step: Step) -> Step:
    def times(rates: Rates) -> Rates:
        return tuple(None if rate is None else rate * REGIONAL for rate in rates)

    return Step(step.since, times(step.rates), tuple((above, times(rates)) for above, rates in step.tiers))


def _shared_names(rows: dict[str, tuple[Row, str]], aliases: dict[str, str]) -> list[str]:
    """A bare id is looked for at every lab, so two labs may not sell different things under one."""
    owners: dict[str, set[str]] = {}
    for name in (*rows, *aliases):
        lab, _, model = name.partition("/")
        if lab in models.LABS:
            owners.setdefault(model, set()).add(lab)
    return [f"{model}: sold by {', '.join(sorted(labs))}" for model, labs in owners.items() if len(labs) > 1]
