"""Effects, which an interceptor returns to the relay: carried out in order, or dropped if that side is gone."""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.events import Side


class Send(Struct, frozen=True):
    """Write a line of the proxy's own to one side, between whole lines; `line` is JSON without a newline inside.

    Caused by a message that ends a turn it goes out before that message, otherwise after it.
    """

    to: Side
    line: bytes


class DenyPermissions(Struct, frozen=True):
    """From now on answer the session's requests for permission with `cancelled` in the client's place.

    With `pending` also those that the client was asked already: its late answers are dropped. `tell` is a line that
    the client gets with the first one that is denied.
    """

    session: str
    pending: bool = False
    tell: bytes | None = None


class AllowPermissions(Struct, frozen=True):
    """Ask the client again."""

    session: str


Effect = Send | DenyPermissions | AllowPermissions
