"""A notice in words: a title and some sentences, plain text on one line each, for people who are not in the session.

Names come from agents, models and users: here they are made harmless to read; what means something in a format of
some service is escaped in `formats`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from acp_proxy.core.budget.refusal import LISTED
from acp_proxy.core.money import budget_text, is_money
from acp_proxy.core.notice import Notice
from acp_proxy.core.windows import SECOND
from acp_proxy.text import times
from acp_proxy.text.figures import clean
from acp_proxy.text.plans import window_name

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_NAME = 80  # characters
_LONGEST_REASON = 500
_REFUSED_ONCE = "Further refusals of this user in this window are not reported."


def title(notice: Notice) -> str:
    match notice.kind, notice.detail:
        case "threshold", _:
            return f"{notice.percent} % of {_budget(notice)} is used"
        case "refusal", "unpriced":
            return f"Refused for want of a price: {_budget(notice)}"
        case "refusal", "overage":
            return f"Refused: {_budget(notice)} allows nothing that is paid beside a plan"
        case "refusal", _ if notice.spent is None:
            return f"Refused: {_budget(notice)} is used up"
        case "refusal", _:
            return f"Refused: {_budget(notice)} has too little left"
        case "stop", "cancel":
            return f"An agent was told to stop: {_budget(notice)} is used up"
        case "stop", _:
            return f"Tools were not permitted: {_budget(notice)} is used up"
        case "unpriced", _:
            return f"No price is known for {_model(notice)}"
        case "plan", _:
            return f"{notice.percent} % of a plan's window ({window_name(notice.window or '')}) is reached"
        case "request", _:
            return f"{_name(notice.user)} asks for more of {_budget(notice)}"
        case "test", _:
            return "A test of acp-proxy"
        case _, "back":
            return "The ledger answers again"
    return "The ledger is out of reach"


def text(notice: Notice) -> str:
    match notice.kind, notice.detail:
        case "threshold", _:
            sentences = [_figures(notice), _consequence(notice), _reset(notice)]
        case "refusal", "unpriced":
            why = f"{_model(notice)} has no known price, and this budget allows no such model."
            sentences = [f"A prompt of {_who(notice)} was refused: {why}", _REFUSED_ONCE]
        case "refusal", _ if notice.spent is None:
            plan = f"It is for {notice.percent} % of a plan's window ({window_name(notice.window or '')})."
            sentences = [f"A prompt of {_who(notice)} was refused.", plan, _end(notice), _REFUSED_ONCE]
        case "refusal", _:
            sentences = [f"A prompt of {_who(notice)} was refused.", _figures(notice), _reset(notice), _REFUSED_ONCE]
        case "stop", _:
            sentences = [f"It was a turn of {_who(notice, 'with')}.", _figures(notice), _reset(notice)]
        case "unpriced", _:
            what = "Its tokens are counted, their cost is not, and no budget of money counts them."
            sentences = [f"It was used in a turn of {_who(notice, 'with')}.", what, _to_price(notice)]
        case "plan", _:
            sentences = [f"It is the plan of {_who(notice, 'with')}.", _end(notice)]
        case "request", _:
            sentences = [_wish(notice), f"acp-proxy budget approve or deny {_name(notice.request)} decides."]
        case "test", _:
            sentences = [f"Somebody on {_name(notice.host)} tries this channel: nothing has happened."]
        case _, "back":
            sentences = [f"acp-proxy serve on {_name(notice.host)} can read it since {_time(notice.at)}."]
        case _:
            what = "Proxies keep what they meter until it is back; budgets do what on_unavailable says."
            sentences = [f"acp-proxy serve on {_name(notice.host)} gets no answer since {_time(notice.at)}.", what]
    return " ".join(filter(None, sentences))


def _budget(notice: Notice) -> str:
    whose = f" ({notice.per} {_name(notice.value)})" if notice.per else ""
    return f'budget "{_name(notice.budget)}"{whose}'


def _model(notice: Notice) -> str:
    return f'model "{_name(notice.model)}"' if notice.model else "a model without a name"


def _to_price(notice: Notice) -> str:
    if notice.model:
        return "A price can be set in the configuration: [prices]."
    return "Which model the agent means can be said under its name in the configuration: [aliases]."


def _who(notice: Notice, joint: str = "to") -> str:
    """`alice (team core, project shop) to claude-code-acp`."""
    places = [f"{name} {_name(value)}" for name, value in (("team", notice.team), ("project", notice.project)) if value]
    where = f" ({', '.join(places)})" if places else ""
    return f"{_name(notice.user)}{where} {joint} {_name(notice.agent)}"


def _wish(notice: Notice) -> str:
    of_team = f" (team {_name(notice.team)})" if notice.team else ""
    amount = budget_text(notice.amount or 0, _name(notice.unit), notice.amount or 0)
    counted = "" if is_money(notice.unit or "") else f" {_name(notice.unit)}"
    return f"{_name(notice.user)}{of_team} asks for {amount}{counted}: {clean(notice.why or '')[:_LONGEST_REASON]}."


def _figures(notice: Notice) -> str:
    held = f", and running turns hold {_amount(notice, notice.held)}" if notice.held else ""
    unit = f" {_name(notice.unit)}"
    spent, limit = (_amount(notice, amount) for amount in (notice.spent, notice.limit))
    counted = "" if is_money(notice.unit or "") else unit
    return f"Used: {spent.removesuffix(unit)} of {limit}{counted}{held}.{f' {LISTED}' if notice.count_plans else ''}"


def _consequence(notice: Notice) -> str:
    """Whether somebody has to wait: who reads it may be the one to grant more."""
    if (notice.percent or 0) < 100 or notice.window == "turn" or _is_over(notice):
        return ""
    return {"enforce": "Further prompts will be refused.", "warn": "It only warns: prompts go on."}.get(
        notice.mode or "", ""
    )


def _amount(notice: Notice, amount: int | None) -> str:
    if amount is None:
        return "?"
    return budget_text(amount, _name(notice.unit), notice.limit or 0)


def _reset(notice: Notice) -> str:
    match notice.window:
        case "turn":
            return "It is for each turn by itself."
        case "session":
            return "It is for one session."
        case "total":
            return "It does not reset."
        case str(window) if window.startswith("rolling:"):
            return f"It is for the last {window.removeprefix('rolling:')}, and comes free as they pass."
    return _end(notice)


def _end(notice: Notice) -> str:
    if notice.resets_at is None:
        return ""
    return f"It {'was reset' if _is_over(notice) else 'resets'} on {_time(notice.resets_at, notice.zone)}."


def _is_over(notice: Notice) -> bool:
    """Whether its window had ended: of a turn that began before."""
    return notice.resets_at is not None and notice.resets_at <= notice.at


def _time(at: int, zone: str | None = None) -> str:
    """`2026-11-23 at 00:00 Europe/Berlin`; in UTC where this machine does not know the zone."""
    try:
        info, name = times.zone(zone or "UTC").info, zone or "UTC"
    except ValueError:
        info, name = UTC, "UTC"
    return f"{(_EPOCH + timedelta(seconds=at // SECOND)).astimezone(info):%Y-%m-%d at %H:%M} {name}"


def _name(name: str | None) -> str:
    if not name:
        return "unknown"
    short = clean(name)
    return short if len(short) <= _LONGEST_NAME else f"{short[: _LONGEST_NAME - 1]}…"
