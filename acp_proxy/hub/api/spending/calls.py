"""The calls about spend limits, with what they ask and answer, in the names of Anthropic's Admin API.

Amounts are cents of US dollars as decimal text, times RFC 3339. What is asked and not known here is an error.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from acp_proxy.ledger.hub.wire import Call

Period: TypeAlias = Literal["daily", "weekly", "monthly"]
Status: TypeAlias = Literal["pending", "approved", "denied"]
PAGE: Final = "20"  # how many are told at once, where nothing else is asked


class OfOrganization(Struct, frozen=True, tag_field="type", tag="organization", forbid_unknown_fields=True):
    """Each user."""


class OfGroup(Struct, frozen=True, tag_field="type", tag="rbac_group", forbid_unknown_fields=True):
    """Each user of a team."""

    rbac_group_id: str


class OfUser(Struct, frozen=True, tag_field="type", tag="user", forbid_unknown_fields=True):
    """One user."""

    user_id: str


Scope: TypeAlias = OfOrganization | OfGroup | OfUser


class Actor(Struct, frozen=True):
    """Somebody; name and address are those of the identity provider."""

    user_id: str
    name: str | None = None
    email_address: str | None = None
    deleted: bool = False
    type: Literal["user_actor"] = "user_actor"


class SpendLimit(Struct, frozen=True):
    """Times are those of the policy's log: `created_at` is None for what it does not tell of."""

    id: str
    scope: Scope
    amount: str
    period: Period
    created_at: str | None
    updated_at: str | None
    currency: Literal["USD"] = "USD"
    is_enabled: bool = True
    type: Literal["spend_limit"] = "spend_limit"


class Page(Struct, frozen=True):
    """Limits by when they were made; `has_more` is told for the direction that was asked for.

    What follows is asked for with `after_id` or, as other clients do, with `next_page` as the `page`.
    """

    data: list[SpendLimit]
    has_more: bool
    first_id: str | None
    last_id: str | None
    next_page: str | None


class Listing(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which limits: up to 1,000, after or before that with an id; with these kinds of scopes."""

    scope_types: list[Literal["organization", "rbac_group", "user"]] = field(name="scope_type[]", default=[])
    limit: str = PAGE
    page: str | None = None
    after_id: str | None = None
    before_id: str | None = None
    beta: str | None = None  # that some clients send


class Setting(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The limit of a scope and a period is to be this, whether there is one already or not."""

    scope: Scope
    amount: str | None
    period: Period = "monthly"
    currency: str = "USD"
    beta: str | None = None


class ById(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of them."""

    id: str
    beta: str | None = None


class Deleted(Struct, frozen=True):
    """It is not there any more."""

    id: str
    type: Literal["spend_limit_deleted"] = "spend_limit_deleted"


class Summary(Struct, frozen=True):
    """What a user may spend in the running period, and has spent. `amount` is the least of the limits that apply, each
    with what was granted on top; `spend_limit_ids` are all of them, the tightest first. Without any `amount` is None.
    """

    scope: OfUser
    actor: Actor
    amount: str | None
    period: Period
    source: Scope | None
    spend_limit_id: str | None
    period_to_date_spend: str
    groups: list[str]
    spend_limit_ids: list[str]
    currency: Literal["USD"] = "USD"


class Summaries(Struct, frozen=True):
    """By user, with all periods of each; `next_page` is asked for with `page`."""

    data: list[Summary]
    next_page: str | None


class Effective(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Of whom: those with these ids, those whose id, name or address has `q` in it; which periods; `limit` users."""

    user_ids: list[str] = field(name="user_ids[]", default=[])
    periods: list[Period] = field(name="period[]", default=[])
    q: str = ""
    limit: str = PAGE
    page: str | None = None
    beta: str | None = None


class Limited(Struct, frozen=True):
    """What of a limit is changed."""

    scope: Scope
    amount: str
    period: Period
    currency: Literal["USD"] = "USD"


class ChangeOfLimit(Struct, frozen=True):
    """A line of the log of changes; `id` is its number there."""

    id: str
    created_at: str
    actor: Actor
    action: Literal["set", "removed"]
    spend_limit_id: str
    before: Limited | None
    after: Limited | None
    type: Literal["spend_limit_change"] = "spend_limit_change"


class Trail(Struct, frozen=True):
    """The latest first."""

    data: list[ChangeOfLimit]
    has_more: bool


class Trailing(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which lines: up to 1,000, before that with an id."""

    limit: str = PAGE
    before_id: str | None = None


class IncreaseRequest(Struct, frozen=True):
    """A request for more; `spend_summary` is told while it waits."""

    id: str
    actor: Actor
    status: Status
    period: Period
    created_at: str
    resolved_at: str | None
    resolved_by: Actor | None
    spend_summary: Summary | None
    type: Literal["spend_limit_increase_request"] = "spend_limit_increase_request"


class IncreaseRequests(Struct, frozen=True):
    """The latest first; `next_page` is asked for with `page`."""

    data: list[IncreaseRequest]
    next_page: str | None


class Asking(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which requests: in these states, of these users."""

    statuses: list[Status] = field(name="status[]", default=[])
    actor_ids: list[str] = field(name="actor_ids[]", default=[])
    limit: str = PAGE
    page: str | None = None
    beta: str | None = None


class Approval(Struct, frozen=True, forbid_unknown_fields=True):
    """`amount` is what the user may spend until the period ends: more than before. `id` is that of the path."""

    amount: str
    id: str = ""
    period: Period | None = None
    suppress_notification: bool = False  # nothing is sent: the user is told with their next prompt


class Denial(Struct, frozen=True, forbid_unknown_fields=True):
    """`id` is that of the path."""

    id: str = ""
    suppress_notification: bool = False


_LIMITS = "/v1/organizations/spend_limits"
_REQUESTS = "/v1/organizations/spend_limit_increase_requests"

LIST = Call("GET", _LIMITS, "Spend limits of the policy", Listing, Page)
SET = Call("POST", _LIMITS, "Set the spend limit of a scope and a period", Setting, SpendLimit)
EFFECTIVE = Call("GET", f"{_LIMITS}/effective", "What each user may spend, and has spent", Effective, Summaries)
AUDIT = Call("GET", f"{_LIMITS}/audit", "Changes of spend limits", Trailing, Trail)
FIND = Call("GET", f"{_LIMITS}/{{id}}", "One spend limit", ById, SpendLimit)
DELETE = Call("DELETE", f"{_LIMITS}/{{id}}", "Remove a spend limit", ById, Deleted)
REQUESTS = Call("GET", _REQUESTS, "Requests for more than a spend limit", Asking, IncreaseRequests)
REQUEST = Call("GET", f"{_REQUESTS}/{{id}}", "One request for more", ById, IncreaseRequest)
APPROVE = Call("POST", f"{_REQUESTS}/{{id}}/approve", "Grant more until the period ends", Approval, IncreaseRequest)
DENY = Call("POST", f"{_REQUESTS}/{{id}}/deny", "Deny a request for more", Denial, IncreaseRequest)
