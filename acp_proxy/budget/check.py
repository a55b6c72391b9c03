"""Whether a prompt would be admitted now. Decides as the relay does, but holds nothing and counts nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.budget import listing
from acp_proxy.core.budget import Budget, Standing, accounts_for
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.refusal import refusal_text
from acp_proxy.core.budget.verdict import Verdict, decide, denies_unpriced
from acp_proxy.core.scope import Dimension, Subject
from acp_proxy.ledger.budgets import BudgetReader
from acp_proxy.text.figures import clean
from acp_proxy.text.times import zone_info

ADMITTED, REFUSED = 0, 3  # exit statuses


class Answer(Struct, frozen=True):
    """An exit status, and lines for people."""

    status: int
    text: str


def check(
    ledger: BudgetReader,
    budgets: Sequence[Budget],
    subject: Subject,
    now: int,
    *,
    unpriced: bool,
    asks: bool = False,
    table: Callable[[Sequence[Standing]], str] = listing.plain,
) -> Answer:
    """For a new session of `subject`; `unpriced`: its model has no price. What is not known of it is said.

    `table` makes one of how the budgets stand. `asks` as in `refusal_text`.
    """
    asked = [budget for budget in budgets if not _missing(budget, subject)]
    accounts = accounts_for(asked, subject, now, zone_info, "")
    standings = [_begun(standing) for standing in ledger.standing(accounts, now)]
    sizes = [HoldSize.of(account.budget) for account in accounts]  # it only matters whether anything can be held
    verdict = decide(standings, sizes, unpriced=unpriced)
    unasked = _unasked(budgets, subject)
    if verdict.binding is not None:
        return Answer(REFUSED, f"{_refusal(verdict.binding, subject, now, unpriced=unpriced, asks=asks)}\n{unasked}")
    return Answer(ADMITTED, f"{_admitted(verdict, standings, table)}{unasked}")


def _begun(standing: Standing) -> Standing:
    """A new session has no spend. Its id is empty here, and an agent may have a session with an empty id."""
    if standing.account.budget.window.name not in ("session", "turn"):
        return standing
    return replace(standing, spent=0, held=0, not_counted=(), unpriced=0, untold=0)


def _refusal(standing: Standing, subject: Subject, now: int, *, unpriced: bool, asks: bool) -> str:
    model = subject.model if unpriced and denies_unpriced(standing.account) else None
    zone = zone_info(standing.account.budget.zone)
    return clean(refusal_text(standing, now, zone, unpriced_model=model, asks=asks))


def _admitted(verdict: Verdict, standings: Sequence[Standing], table: Callable[[Sequence[Standing]], str]) -> str:
    if not standings:
        return "A prompt would be admitted: no budget is about it.\n"
    despite = "".join(
        f"Too little is left of budget {clean(account.budget.name)}, but its mode is {account.budget.mode}.\n"
        for account, decision in verdict.decisions
        if decision != "allow"
    )
    return f"A prompt would be admitted.\n{despite}\n{table(standings)}"


def _unasked(budgets: Iterable[Budget], subject: Subject) -> str:
    """Budgets that might apply to the prompt if more were known about it."""
    lines = "".join(
        f"Not asked: budget {clean(budget.name)}, which depends on {' and '.join(f'--{name}' for name in missing)}.\n"
        for budget in budgets
        if (missing := _missing(budget, subject)) and budget.may_match(subject, missing)
    )
    return f"\n{lines}" if lines else ""


def _missing(budget: Budget, subject: Subject) -> list[Dimension]:
    """The unknown values that decide whether the budget applies to the prompt; "no team" counts as known."""
    unknown: tuple[Dimension, ...] = ("agent", "model")
    return [name for name in unknown if not subject.of(name) and (budget.scope.of(name) or budget.per == name)]
