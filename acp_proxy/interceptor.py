"""The extension point: an observer, an enforcer or an exporter is one subclass in one file.

Found through the entry-point group `acp_proxy.interceptors`. An exception that leaves a method is logged and
counted; the relay goes on as if the method had returned nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, Side

if TYPE_CHECKING:
    from acp_proxy.core.jsonrpc import Request


class Refusal(Struct, frozen=True):
    """An answer in place of the other side's: exactly one of `result` and `error` is given.

    `effects` are carried out before the answer, e.g. a message that says why.
    """

    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None  # {"code": int, "message": str, "data"?: ...}
    effects: tuple[Effect, ...] = ()


class Admitted(Struct, frozen=True):
    """A prompt may go. Its turn gets the id `turn`, a UUIDv7; `effects` are carried out when it went."""

    turn: str
    effects: tuple[Effect, ...] = ()


class Interceptor:
    """Does nothing; override what you need."""

    request_methods: frozenset[str] = frozenset()
    """Methods of the client whose requests wait for `admit`. All others are forwarded without asking."""

    admit_timeout: float | None = None
    """Seconds that `admit` may take; after them it counts as failed, and the request goes on without its answer.

    None: the relay's admission timeout. `math.inf`: `admit` bounds itself and is always heard, also where the whole
    process was stopped for a while.
    """

    event_types: frozenset[type[Event]] | None = None
    """Classes of the events that `on_event` is called with. None: all, or none where it is not overridden."""

    async def admit(self, sender: Side, request: Request) -> Refusal | Admitted | None:
        """May refuse a request, and may do I/O: only this request, and later lines of its session, wait.

        None admits. Interceptors are called in their order; a later one may still refuse.
        """
        return None

    def on_event(self, event: Event) -> Iterable[Effect]:
        """Receives every event of these types, in order. Must return at once, without I/O: the relay waits for it."""
        return ()

    async def aclose(self) -> None:
        """The relay has ended: flush, within a second. After two seconds acp-proxy exits without waiting."""
