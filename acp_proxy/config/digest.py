"""A digest of the keys of one file that affect budgets: equal for files with the same meaning.

Only for comparison. Comments, order and other keys do not affect the digest, nor does a password.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from acp_proxy.config import Config
from acp_proxy.config.schema import Key
from acp_proxy.core import digest as digests
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.places import canonical_url, is_shared
from acp_proxy.ledger.settings import FileLayer
from acp_proxy.system.directories import SYNCHRONOUS

if TYPE_CHECKING:
    from acp_proxy.core.budget import Budget
    from acp_proxy.core.budget.plan_limits import PlanBudget

FORM = 1  # another one where the same file would have another digest

_JUDGED = frozenset(
    {
        ("run", "budget"),
        ("run", "agent"),
        ("run", "estimate"),
        ("ledger", "url"),
        ("ledger", "on_unavailable"),
        ("ledger", "admission_timeout"),
    }
)
_JUDGED_TABLES = ("identity", "pricing", "prices", "aliases", "agents", "billing")


class _Window(Struct):
    """As versions encode it that know of no `week_start`."""

    name: str
    hours: int


def digest(config: Config, layer: FileLayer) -> str:
    """A missing file has the same digest as an empty one."""
    settings = {key: _meant(key, value) for key, value in config.by_file[layer].items() if _is_judged(key)}
    budgets = {each.name: _of_budget(each) for each in config.budgets if each.layer == layer}
    budgets |= {each.name: _of_plan_budget(each) for each in config.plan_budgets if each.layer == layer}
    return _digest_of(sorted(settings.items()), budgets)


def _digest_of(settings: Sequence[tuple[Key, Any]], budgets: Mapping[str, Any]) -> str:
    return digests.digest(msgspec.json.encode([settings, budgets], order="deterministic"), 16)


NOTHING = _digest_of([], {})
"""The digest of no file."""


def _is_judged(key: Key) -> bool:
    return key in _JUDGED or key[0] in _JUDGED_TABLES


def _meant(key: Key, value: Any) -> Any:
    match key:
        case ("identity", _):  # whose machine it is differs from one to the next; that it is final does not
            return True
        case ("prices", _, _) if isinstance(value, str):
            return str(Decimal(value).normalize())
        case ("ledger", "url"):
            return _place(value)
    return value


def _place(url: str) -> str:
    """The place of the ledger, without user, password and options."""
    try:
        return canonical_url(url) if is_shared(url) else url.partition(SYNCHRONOUS)[0]
    except LedgerError:
        return ""


def _of_budget(budget: Budget) -> Mapping[str, Any]:
    """Only values other than the defaults, so that a key of a later version does not change digests."""
    said = {each.name: getattr(budget, each.name) for each in fields(budget) if each.name not in ("name", "layer")}
    said["window"] = _Window(budget.window.name, budget.window.hours)
    said["week_start"] = budget.window.week_start
    said["count_plans"] = budget.limit.is_money and not budget.scope.without_plans
    return _unusual(budget, said, {"week_start": "monday", "count_plans": False})


def _of_plan_budget(budget: PlanBudget) -> Mapping[str, Any]:
    said = {each.name: getattr(budget, each.name) for each in fields(budget) if each.name not in ("name", "layer")}
    return _unusual(budget, said, {})


def _unusual(budget: Budget | PlanBudget, said: dict[str, Any], more: dict[str, Any]) -> Mapping[str, Any]:
    said["scope"] = {dimension: sorted(set(texts)) for dimension, texts in budget.scope.texts.items()}
    defaults = {each.name: each.default for each in fields(budget)} | more
    return {name: value for name, value in said.items() if value != defaults[name]}
