"""The parameters of the page's JSON. Anything else is an error of one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from acp_proxy.report import query
from acp_proxy.serve.periods import RANGES, dates_of
from acp_proxy.serve.sums import Where
from acp_proxy.text import times
from acp_proxy.text.times import Zone

FILTERED = ("agent", "model", "project", "team", "user")


class BadQuestionError(Exception):
    """The text says what was expected; `status` is that of HTTP."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


def only(asked: Mapping[str, str], names: Iterable[str] = ()) -> None:
    """Raises BadQuestionError for a parameter of another name, as all of these do for what they do not take."""
    known = tuple(names)
    for name in asked:
        if name not in known:
            raise BadQuestionError(f"unknown parameter; expected {', '.join(known) or 'none'}")


def choice(asked: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """One of them, by default the first."""
    value = asked.get(name, choices[0])
    if value not in choices:
        raise BadQuestionError(f"{name}: expected {', '.join(choices)}")
    return value


def number(asked: Mapping[str, str], name: str, default: int, most: int) -> int:
    """From 1 to `most`."""
    value = asked.get(name, str(default))
    if not (value.isascii() and value.isdigit() and len(value) < 10 and 0 < int(value) <= most):
        raise BadQuestionError(f"{name}: expected a number from 1 to {most}")
    return int(value)


def zone(asked: Mapping[str, str], local: Zone) -> Zone:
    """The time zone that `tz` names, by default `local`."""
    if "tz" not in asked:
        return local
    try:
        return times.zone(asked["tz"])
    except ValueError as error:
        raise BadQuestionError(f"tz: {error}") from error


def period(asked: Mapping[str, str], default: str) -> str:
    """The period that `range` names: one of `RANGES`, or dates as `dates_of` reads them."""
    value = asked.get("range", default)
    if value in RANGES:
        return value
    if ".." not in value:
        raise BadQuestionError(f"range: expected {', '.join(RANGES)} or dates such as 2026-11-01..2026-11-15")
    try:
        dates_of(value)
    except ValueError as error:
        raise BadQuestionError(f"range: {error}") from error
    return value


def filters(asked: Mapping[str, str]) -> Where:
    """The filters of rows, with the names of `acp-proxy report`; `none` selects rows without a team."""
    return query(None, None, ((name, asked[name]) for name in FILTERED if name in asked)).where
