"""What is asked of each provider's API for the days of a bill. Pure: no network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args
from urllib.parse import urlencode

from msgspec import Struct

from acp_proxy.bills import By, date_of

ApiOf = Literal["anthropic", "openai", "litellm"]
WITH_API: tuple[ApiOf, ...] = get_args(ApiOf)
MOST_DAYS = 31  # of one listing, for Anthropic and OpenAI
_DAY = 86_400


class Listing(Struct, frozen=True):
    """A question whose answer has pages. `by_number`: they are counted from 1, in place of tokens."""

    name: str  # as errors call it
    path: str
    query: tuple[tuple[str, str], ...]
    by_number: bool = False

    def url(self, base: str, page: str | None) -> str:
        query = [*self.query, *([] if page is None else [("page", page)])]
        return f"{base.rstrip('/')}{self.path}?{urlencode(query)}"


class Provided(Struct, frozen=True):
    """How a provider is asked: where, whose key is in which variable, and in which header it goes."""

    base: str | None  # None: everybody has an own one
    variable: str
    header: str
    prefix: str = ""
    more: tuple[tuple[str, str], ...] = ()


PROVIDED: dict[ApiOf, Provided] = {
    "anthropic": Provided(
        "https://api.anthropic.com",
        "ANTHROPIC_ADMIN_KEY",
        "x-api-key",
        more=(("anthropic-version", "2023-06-01"),),
    ),
    "openai": Provided("https://api.openai.com", "OPENAI_ADMIN_KEY", "Authorization", "Bearer "),
    "litellm": Provided(None, "LITELLM_API_KEY", "Authorization", "Bearer "),
}


def listings(provider: ApiOf, days: range, by: By) -> Iterator[Listing]:
    """All that a bill of these days of UTC (since 1970) takes."""
    spans = [days[at : at + MOST_DAYS] for at in range(0, len(days), MOST_DAYS)]
    match provider:
        case "anthropic":
            for span in spans:
                yield from _anthropic(span, by)
        case "openai":
            for span in spans:
                yield from _openai(span, by)
        case "litellm":
            yield _litellm(days)


def _anthropic(days: range, by: By) -> Iterator[Listing]:
    """Costs cannot be asked for by key."""
    times = (
        ("starting_at", f"{date_of(days.start)}T00:00:00Z"),
        ("ending_at", f"{date_of(days.stop)}T00:00:00Z"),
        ("bucket_width", "1d"),
        ("limit", str(MOST_DAYS)),
    )
    who = {"key": [("group_by[]", "api_key_id")], "user": [("group_by[]", "account_id")]}.get(by, [])
    usage = (*times, ("group_by[]", "model"), *who)
    yield Listing(_name("usage", days), "/v1/organizations/usage_report/messages", usage)
    yield Listing(_name("cost", days), "/v1/organizations/cost_report", (*times, ("group_by[]", "description")))


def _openai(days: range, by: By) -> Iterator[Listing]:
    times = (
        ("start_time", str(days.start * _DAY)),
        ("end_time", str(days.stop * _DAY)),
        ("bucket_width", "1d"),
        ("limit", str(MOST_DAYS)),
    )
    who = {"key": [("group_by[]", "api_key_id")], "user": [("group_by[]", "user_id")]}.get(by, [])
    usage = (*times, ("group_by[]", "model"), *who)
    yield Listing(_name("usage", days), "/v1/organization/usage/completions", usage)
    yield Listing(_name("cost", days), "/v1/organization/costs", (*times, ("group_by[]", "line_item")))


def _litellm(days: range) -> Listing:
    """Its sums by day; rows of `/spend/logs` may have the words of a prompt in them. Both dates are inclusive."""
    query = (
        ("start_date", date_of(days.start)),
        ("end_date", date_of(days.stop - 1)),
        ("timezone", "0"),
        ("page_size", "1000"),
    )
    return Listing(_name("activity", days), "/user/daily/activity", query, by_number=True)


def _name(what: str, days: range) -> str:
    return f"{what} of {date_of(days.start)} to {date_of(days.stop - 1)}"
