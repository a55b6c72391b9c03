"""The state of accounts, for people and for programs: used, held, left, and the time of the reset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from msgspec.structs import replace

from acp_proxy.budget import amount_text, on_plans, reset_text, whose, with_unit
from acp_proxy.core.budget import Account, Layer, Standing
from acp_proxy.core.budget.plan_limits import PlanStanding
from acp_proxy.core.money import amount_text as money_text
from acp_proxy.core.money import exact_text, summed
from acp_proxy.report.formats import as_json_text
from acp_proxy.text import table
from acp_proxy.text.figures import AT_LEAST, clean, counted
from acp_proxy.text.table import Column
from acp_proxy.text.times import rfc3339_or_none

_MORE = "docs/budgets.md"
NOTHING: Mapping[str, int] = MappingProxyType({})


def plain(standings: Sequence[Standing], more: Sequence[str] = (), lent: Mapping[str, int] = NOTHING) -> str:
    """`more` are lines that stand below what the figures leave out; `lent` is, by account, held for machines."""
    return table.plain(_columns(standings, lent), [*_notes(standings), *more])


def coloured(
    standings: Sequence[Standing],
    width: int,
    environ: Mapping[str, str],
    more: Sequence[str] = (),
    lent: Mapping[str, int] = NOTHING,
) -> str:
    """For a terminal of `width` columns; the bars show what is used and, paler, what is held."""
    notes = [*_notes(standings), *more]
    return table.coloured(_columns(standings, lent), notes, lambda room: _bars(standings, room), width, environ)


def as_json(
    standings: Sequence[Standing], plans: Sequence[PlanStanding] = (), lent: Mapping[str, int] = NOTHING
) -> str:
    return as_json_text(
        {
            "budgets": [
                described(each)
                | ({"lent": exact_text(lent[key], each.account.unit)} if (key := each.account.key) in lent else {})
                for each in standings
            ],
            "plan_budgets": [on_plans.described(standing) for standing in plans],
        }
    )


def described(standing: Standing) -> dict[str, object]:
    """As in the JSON of `budget list`."""
    account, budget = standing.account, standing.account.budget
    return {
        "name": budget.name,
        "layer": budget.layer,
        "scope": {**budget.scope.texts, **{name: [value] for name, value in whose(account).items()}},
        "window": budget.window.text,
        "window_start": rfc3339_or_none(account.bounds.start),
        "resets_at": rfc3339_or_none(account.resets_at),
        "unit": account.unit,
        "mode": budget.mode,
        **({"count_plans": True} if budget.count_plans else {}),
        "limit": exact_text(account.limit, account.unit),
        "granted": exact_text(standing.granted, account.unit),
        "spent": exact_text(standing.spent, account.unit),
        "held": exact_text(standing.held, account.unit),
        "left": exact_text(standing.left, account.unit),
        "at_least": standing.at_least,
        "not_counted": _not_counted(standing),
    }


def _not_counted(standing: Standing) -> dict[str, str]:
    """By unit: money in other currencies, and as turns those without a known price."""
    others = {money.currency: money.text for money in standing.not_counted}
    return others | ({"turns": str(standing.unpriced)} if standing.unpriced else {})


def _columns(standings: Sequence[Standing], lent: Mapping[str, int]) -> list[Column]:
    """A column whose cells are all the same, such as nothing held, is left out."""
    accounts = [standing.account for standing in standings]
    modes = [account.budget.mode for account in accounts]
    layers = [account.budget.layer for account in accounts]
    return [
        Column("budget", [clean(account.budget.name) for account in accounts], right=False, name=True),
        *((Column("set by", list(map(_set_by, layers)), right=False, spare=1),) if "hub" in layers else ()),
        *_unless_empty(
            "for", (clean(", ".join(whose(account).values())) for account in accounts), right=False, name=True
        ),
        *(
            ()
            if set(modes) == {"enforce"}
            else (Column("mode", modes, right=False, spare=1, otherwise=_not_enforced(accounts)),)
        ),
        Column("window", [account.budget.window.text for account in accounts], right=False, spare=7),
        Column("used", [_used(standing) for standing in standings], spare=-1),
        Column("%", [f"{standing.percent}" for standing in standings], levels=[_level(each) for each in standings]),
        *_unless_empty("held", (_amount(standing, standing.held) for standing in standings), spare=5),
        *_unless_empty("of it lent", (_amount(each, lent.get(each.account.key, 0)) for each in standings), spare=6),
        Column(
            "left", [with_unit(standing.left, standing.account.budget.limit, column=True) for standing in standings]
        ),
        Column("limit", [amount_text(account.limit, account.budget.limit) for account in accounts], spare=6),
        *_unless_empty("granted", (_amount(standing, standing.granted) for standing in standings), spare=4),
        Column("resets", [reset_text(account) for account in accounts], right=False, spare=2),
    ]


def _set_by(layer: Layer) -> str:
    return {"hub": "hub", "admin": "admin file"}.get(layer, "own file")


def _not_enforced(accounts: Iterable[Account]) -> str:
    """Modes in which an exceeded limit refuses no prompt."""
    modes = {account.budget.name: account.budget.mode for account in accounts if not account.enforced}
    return f"Not enforced: {', '.join(f'{clean(name)} ({mode})' for name, mode in modes.items())}."


def _unless_empty(
    title: str, cells: Iterable[str], *, right: bool = True, name: bool = False, spare: int = 0
) -> list[Column]:
    found = list(cells)
    return [Column(title, found, right=right, name=name, spare=spare)] if any(found) else []


def _used(standing: Standing) -> str:
    text = amount_text(standing.spent, standing.account.budget.limit)
    return f"{AT_LEAST}{text}" if standing.at_least else text


def _amount(standing: Standing, amount: int) -> str:
    return amount_text(amount, standing.account.budget.limit) if amount else ""


def _level(standing: Standing) -> str:
    percent = standing.percent
    return "red" if percent >= 100 else "orange" if percent >= 90 else "yellow" if percent >= 75 else ""


def _bars(standings: Iterable[Standing], width: int) -> list[tuple[str, str]]:
    return [(_level(standing) or "bar", _bar(standing, width)) for standing in standings]


def _bar(standing: Standing, width: int) -> str:
    """As wide as what is allowed, whether that is much or little: what is empty is left."""
    allowed = max(standing.allowed, 1)
    spent = table.bar_text(allowed if standing.percent >= 100 else max(0, standing.spent), allowed, width)
    held = min(-(-standing.held * width // allowed), width - len(spent))
    return (spent + "▒" * held).ljust(width, "·")


def _notes(standings: Sequence[Standing]) -> list[str]:
    """What the figures do not include, on one line per budget, with a link."""
    by_budget = groupby(standings, key=lambda standing: (standing.account.budget.layer, standing.account.budget.name))
    together = [_together(list(group)) for _, group in by_budget]
    untold = [f"{_name(each)} {counted(each.untold, 'turn')}" for each in together if each.untold]
    uncounted = [f"{_name(each)} {', '.join(found)}" for each in together if (found := _left_out(each))]
    listed = [f'"{name}"' for name in dict.fromkeys(each.account.budget.name for each in standings if _lists(each))]
    parts = [
        *([f"list prices, not billed, of what plans cover are in {', '.join(listed)}"] if listed else []),
        *([f"{AT_LEAST}at least: agents reported only a part of {'; '.join(untold)}"] if untold else []),
        *([f"not counted: {'; '.join(uncounted)}"] if uncounted else []),
    ]
    return [clean(" · ".join([*parts, _MORE]))] if parts else []


def _lists(standing: Standing) -> bool:
    return standing.account.budget.count_plans


def _name(standing: Standing) -> str:
    return f'"{standing.account.budget.name}"'


def _left_out(standing: Standing) -> list[str]:
    """Money in other currencies than the budget's, and turns without a known price."""
    unpriced = standing.unpriced
    others = [money_text(money) for money in standing.not_counted]
    return [*others, *([f"{counted(unpriced, 'turn')} without a known price"] if unpriced else [])]


def _together(standings: Sequence[Standing]) -> Standing:
    """The spend that the accounts of one budget do not count."""
    account = standings[0].account
    nobodys = replace(account, budget=replace(account.budget, per=None), value=None)
    uncounted = summed(money for standing in standings for money in standing.not_counted)
    return Standing(
        nobodys,
        not_counted=uncounted,
        unpriced=sum(standing.unpriced for standing in standings),
        untold=sum(standing.untold for standing in standings),
    )
