"""Windows of plans that an agent keeps to itself, from the file in which it writes them down: a moment after each turn.

No line waits for that. What is found is told to all who listen for windows that agents tell.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Origin
from acp_proxy.core.events import Event, PlanReported, TurnMetered
from acp_proxy.core.plans import PlanWindow
from acp_proxy.interceptor import Interceptor

_WRITTEN = 1.0  # seconds after which an agent has written down how a call ended

Read = Callable[[str, str], Sequence[PlanWindow]]  # an agent and a session -> the latest of each window


class PlansOfBooks(Interceptor):
    """`read` reads files, in a thread of its own; `tells` says of which agents there is anything.

    `later` (seconds, function) and `announce` are of the relay's thread, `soon` brings a function there from another.
    """

    event_types = frozenset({TurnMetered})

    def __init__(
        self,
        read: Read,
        tells: Callable[[str], bool],
        origin_of: Callable[[str], Origin],
        announce: Callable[[PlanReported], None],
        *,
        later: Callable[[float, Callable[[], object]], object],
        soon: Callable[[Callable[[], object]], object],
        warn: Callable[..., None],
    ) -> None:
        self._read = read
        self._tells = tells
        self._origin_of = origin_of
        self._announce = announce
        self._later = later
        self._soon = soon
        self._warn = warn
        self._looking: set[str] = set()  # sessions
        self._known: dict[str, PlanWindow] = {}  # by name
        self._gave_up = False

    def on_event(self, event: Event) -> Iterable[Effect]:
        if isinstance(event, TurnMetered):
            session, agent = event.entry.session, self._origin_of(event.entry.session).agent
            if session not in self._looking and not self._gave_up and self._tells(agent):
                self._looking.add(session)
                self._later(_WRITTEN, partial(self._begin, agent, session))
        return ()

    def _begin(self, agent: str, session: str) -> None:
        self._looking.discard(session)
        with suppress(RuntimeError):  # no thread can be started: the next turn's end, or an import, finds it
            threading.Thread(target=self._look, args=(agent, session), name="acp-proxy plans", daemon=True).start()

    def _look(self, agent: str, session: str) -> None:
        try:
            found = self._read(agent, session)
        except Exception as error:  # the one boundary: it only looks
            self._tell(partial(self._give_up, type(error).__name__))
            return
        self._tell(partial(self._found, session, found))

    def _tell(self, what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has ended in the meantime
            self._soon(what)

    def _give_up(self, reason: str) -> None:
        if not self._gave_up:
            self._gave_up = True
            self._warn("books.plan_not_read", error=reason)

    def _found(self, session: str, windows: Sequence[PlanWindow]) -> None:
        news = tuple(each for each in windows if self._known.get(each.window) != each)
        self._known.update((each.window, each) for each in news)
        if news:
            self._announce(PlanReported(max(each.seen_at for each in news), session, news))
