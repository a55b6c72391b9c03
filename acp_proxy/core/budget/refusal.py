"""Texts of budgets for the user: refusals, warnings, and spend that a budget cannot count. One plain paragraph each.

Some clients give wrong advice where they read "context" or "token" in an error: no text here has these words, but
for figures of a budget that counts tokens, and names that a user chose.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.money import amount_text, budget_text, exact_text
from acp_proxy.core.windows import SECOND

LISTED = "What plans cover is counted at its list price, which is not billed."

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def refusal_text(
    standing: Standing,
    now: int,
    zone: tzinfo,
    *,
    unpriced_model: str | None = None,
    asks: bool = False,
    further: str | None = None,
) -> str:
    """Names the budget, used, limit, reset and how to get more. `zone` is the budget's, `now` Unix ns.

    `asks`: more is to be asked for, because a team's hub keeps the ledger; `further` stands in place of how.

    With `unpriced_model` the reason is not the limit, but that the model has no price.
    """
    account = standing.account
    if unpriced_model is not None:
        return (
            f"Not sent to the agent: {_name(account)} allows no model without a known price, and {unpriced_model} has "
            "none. Choose another model, or set its price in the configuration."
        )
    return (
        f"Not sent to the agent: {_name(account)} has too little left. {_figures(standing)} {_least(standing)}"
        f"{reset_text(account, now, zone)} {further or _how_to_get_more(standing, asks=asks)}"
    )


def may_be_asked_for(account: Account) -> bool:
    """Whether a team's hub is asked for more of it: of the budgets of your own file you grant more yourself."""
    return account.budget.layer != "flag" and not account.budget.owner


def unreachable_text(account: Account, *, leased: Literal["process", "machine"] | None) -> str:
    """The ledger is unavailable, and the budget refuses prompts without it; `leased`: beyond what is held by whom."""
    used_up = f", and nothing is left of what was set aside for this {leased}" if leased else ""
    return (
        f"Not sent to the agent: {_name(account)} cannot be checked, because its ledger is out of reach{used_up}. "
        "Send the prompt again in a moment. If this continues, `acp-proxy doctor` says why."
    )


def unchecked_text(account: Account) -> str:
    """The ledger is unavailable, and the budget permits prompts without it."""
    return (
        f"Not checked: {_name(account)}, because its ledger is out of reach. Prompts are sent meanwhile, and their "
        "usage is counted when it is back."
    )


def stop_text(
    standing: Standing,
    now: int,
    zone: tzinfo,
    *,
    cancelled: bool,
    estimated: bool = False,
    asks: bool = False,
) -> str:
    """A running turn reached the limit; `estimated`: its own part is what it took at least, by its tokens."""
    account = standing.account
    what = "The agent was told to stop" if cancelled else "A tool was not permitted, nor will be others in this turn"
    further = "Send the prompt again to go on." if _is_over(account, now) else _how_to_get_more(standing, asks=asks)
    return (
        f"{what}: {_name(account)} is used up. {_figures(standing, estimated=estimated)} "
        f"{reset_text(account, now, zone)} {further}"
    )


def warning_text(standing: Standing, threshold: int, now: int, zone: tzinfo) -> str:
    """A threshold in percent was reached."""
    account = standing.account
    others = account.budget.window.name != "turn" and not _is_over(account, now)  # that fall under it, too
    after = "Further prompts will be refused. " if threshold >= 100 and account.enforced and others else ""
    return f"{threshold} % of {_name(account)} is reached. {_figures(standing)} {after}{reset_text(account, now, zone)}"


def uncounted_text(standing: Standing, *, silent: bool = False) -> str | None:
    """The spend that was not counted; None if there is none. `silent`: also a turn without any report."""
    parts = [amount_text(money) for money in standing.not_counted]
    if standing.unpriced:
        held = ", beyond what they held" if standing.account.budget.on_unpriced == "estimate" else ""
        turns = f"{standing.unpriced:,} {_plural('turn', standing.unpriced)}"
        parts.append(f"the cost of {turns} without a known price{held}")
    if silent:
        parts.append("a turn of which the agent told nothing, for `run.estimate` is false")
    if not parts:
        return None
    counts = " and ".join(standing.account.budget.units)
    return f"Not counted by {_name(standing.account)}, which counts {counts}: {', '.join(parts)}."


def reset_text(account: Account, now: int, zone: tzinfo) -> str:
    """When the account is empty again, as a sentence."""
    match account.budget.window.name:
        case "turn":
            return "It is for each turn by itself."
        case "session":
            return "It is for this session: a new one starts at 0."
        case "rolling":
            return f"It is for the last {account.budget.window.hours} h, and comes free as they pass."
    if account.resets_at is None:
        return "It does not reset."
    end = (_EPOCH + timedelta(seconds=account.resets_at // SECOND)).astimezone(zone)
    at = f"on {end:%Y-%m-%d} at {end:%H:%M} {account.budget.zone}"
    if _is_over(account, now):  # a turn that began before goes on
        return f"It was reset {at}."
    return f"It resets {at}, in {duration_text(account.resets_at - now)}."


def _is_over(account: Account, now: int) -> bool:
    return account.resets_at is not None and account.resets_at <= now


def _name(account: Account) -> str:
    whose = f" ({account.budget.per} {account.value})" if account.budget.per else ""
    return f'budget "{account.budget.name}"{whose}'


def _figures(standing: Standing, *, estimated: bool = False) -> str:
    spent, held, allowed, granted = (
        _amount(amount, standing) for amount in (standing.spent, standing.held, standing.allowed, standing.granted)
    )
    more = f" ({granted} of it granted)" if standing.granted else ""
    running = f", and running turns hold {held}, some of which may come free" if standing.held > 0 else ""
    unit = "" if standing.account.budget.limit.is_money else f" {standing.account.unit}"
    least, why = ("at least ", ", as far as can be told while the turn runs") if estimated else ("", "")
    listed = f" {LISTED}" if standing.account.budget.count_plans else ""
    spent = spent.removesuffix(f" {standing.account.unit}")
    return f"Used: {least}{spent} of {allowed}{unit}{more}{why}{running}.{listed}"


def _least(standing: Standing) -> str:
    """The minimum of a prompt, because the rest of a budget may look sufficient."""
    if standing.left <= 0:
        return ""
    account = standing.account
    unit = "" if account.budget.limit.is_money else f" {account.unit}"
    return f"A prompt needs at least {_amount(HoldSize.of(account.budget).floor, standing)}{unit}. "


def _amount(amount: int, standing: Standing) -> str:
    return budget_text(amount, standing.account.unit, standing.allowed)


def _how_to_get_more(standing: Standing, *, asks: bool) -> str:
    account = standing.account
    if account.budget.layer == "flag":
        return "To go on, start the agent with a larger --budget."
    which = f"{quoted(account.budget.name)}{_for_whom(account)}"
    if asks and may_be_asked_for(account):
        command = f'acp-proxy budget request {which} --amount {enough(standing)} --reason "…"'
        return f"To ask for more, run `{command}`, and send the prompt again when it is granted."
    command = f'acp-proxy budget grant {which} --amount {enough(standing)} --for 2h --reason "…"'
    return f"To go on now, run `{command}` and send the prompt again."


def _for_whom(account: Account) -> str:
    """The command knows the user who types it; the agent's name and project must be options."""
    per = account.budget.per
    return f" --for-{per}={quoted(account.value)}" if account.value and per not in (None, "user") else ""


def enough(standing: Standing) -> str:
    """A round amount of at least half the limit, and with which a prompt is let go: 1, 2 or 5 and zeros."""
    budget = standing.account.budget
    least = max(-(-budget.limit.amount // 2), HoldSize.of(budget).floor - standing.left)
    power = 10 ** (len(str(least)) - 1)
    amount = next(step * power for step in (1, 2, 5, 10) if step * power >= least)
    return exact_text(amount, budget.limit.unit)


def quoted(name: str) -> str:
    """As a shell takes it for one word."""
    if re.fullmatch(r"\w[\w@%+=:,./-]*", name, re.ASCII):
        return name
    return "'" + name.replace("'", "'\"'\"'") + "'"


def duration_text(nanoseconds: int) -> str:
    """The two largest parts, rounded up to a minute: `3 d 4 h`, `5 h 12 min`, `1 min`."""
    minutes = max(1, -(-nanoseconds // (60 * SECOND)))
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"
