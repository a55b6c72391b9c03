"""The calls by which people ask a hub for more, and decide on it. As `wire` says."""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.budget.requests import Decision, MoreRequest, RequestState, Wish
from acp_proxy.ledger.hub.wire import Call


class Wanted(Struct, frozen=True):
    """Which requests of those that the asker may see: in this state; their own; one that this id names."""

    state: RequestState | None = None
    own: bool = False
    id: str | None = None


ASK = Call("POST", "/v1/requests", "Ask for more than a budget allows; noted once, by its id", Wish, MoreRequest)
REQUESTS = Call("POST", "/v1/requests/search", "Requests for more, the latest first", Wanted, list[MoreRequest])
DECIDE = Call("POST", "/v1/requests/decision", "Approve or deny a request for more", Decision, MoreRequest)
