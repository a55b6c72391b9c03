"""Keeps what agents tell of the windows of their user's plan, and says when so many percent of one are reached.

The ledger is written in its worker's thread, and says which process of which machine tells the user: once in each
window. What it has not said when a turn ends is told at the beginning or the end of the session's next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from acp_proxy.core import acp
from acp_proxy.core.effects import Effect, Send
from acp_proxy.core.entry import Origin
from acp_proxy.core.events import Event, Initialized, PlanReported, SessionClosed, Side, TurnMetered, TurnStarted
from acp_proxy.core.notice import plan_reached
from acp_proxy.core.plans import THRESHOLDS, PlanState, PlanWindow, is_news
from acp_proxy.core.windows import SECOND
from acp_proxy.interceptor import Interceptor
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.worker import LedgerWorker

_AGAIN = 60 * SECOND  # after which a window of which nothing is news is noted as seen

Say = Callable[[PlanState, int, int], str]  # a window, the percent that it reached, now -> for its user


class Plans(Interceptor):
    """`origin_of` says whose plan it is; `say` is called in the worker's thread; `clock` is Unix time in ns.

    Without `in_editor` only people elsewhere are told.
    """

    event_types = frozenset({Initialized, PlanReported, TurnStarted, TurnMetered, SessionClosed})

    def __init__(
        self,
        worker: LedgerWorker,
        origin_of: Callable[[str], Origin],
        say: Say,
        *,
        thresholds: Sequence[int] = THRESHOLDS,
        in_editor: bool = True,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._thresholds = thresholds
        self._in_editor = in_editor
        self._worker = worker
        self._origin_of = origin_of
        self._say = say
        self._clock = clock
        self._notices = False
        self._noted: dict[str, PlanWindow] = {}  # by name
        self._asked: set[tuple[str, int]] = set()  # windows and percent: of the worker's thread
        self._untold: dict[str, list[str]] = {}  # by session

    def on_event(self, event: Event) -> Iterable[Effect]:
        match event:
            case PlanReported(session=session, windows=windows):
                self._note(session, [each for each in windows if self._is_worth_it(each)])
            case TurnStarted(session=session) if self._untold:
                return self._tell(session, first=True)
            case TurnMetered(entry=entry) if self._untold and entry.stop_reason is not None:
                return self._tell(entry.session)
            case Initialized(client_notices=notices):
                self._notices = notices
            case SessionClosed(session=session):
                self._untold.pop(session, None)
        return ()

    def _is_worth_it(self, told: PlanWindow) -> bool:
        before = self._noted.get(told.window)
        if before is not None and told.seen_at - before.seen_at < _AGAIN and not is_news(told, before):
            return False
        self._noted[told.window] = told
        return True

    def _note(self, session: str, windows: Sequence[PlanWindow]) -> None:
        if not windows:
            return
        origin, loop = self._origin_of(session), asyncio.get_running_loop()

        def note(ledger: BudgetLedger) -> None:
            for state in ledger.note_plan(origin, windows):
                if text := self._warning(ledger, origin, state):
                    with suppress(RuntimeError):  # the loop has ended in the meantime
                        loop.call_soon_threadsafe(self._to_be_told, session, text)

        self._worker.do(note)

    def _to_be_told(self, session: str, text: str) -> None:
        self._untold.setdefault(session, []).append(text)

    def _warning(self, ledger: BudgetLedger, origin: Origin, state: PlanState) -> str | None:
        """What is ours to tell the user. For people elsewhere the highest that is reached is noted."""
        now, reached, ours = self._clock(), state.reached(self._thresholds), False
        if reached is None or state.is_over(now):
            return None
        for percent in self._thresholds:
            key = (f"{state.told.window} {state.told.resets_at or state.first_at}", percent)
            if percent <= reached and key not in self._asked:
                notice = plan_reached(origin.organisation, state, percent) if percent == reached else None
                ours |= ledger.announce_plan(origin.organisation, state, percent, notice)
                self._asked.add(key)
        return self._say(state, reached, now) if ours and self._in_editor else None

    def _tell(self, session: str, *, first: bool = False) -> Iterable[Effect]:
        """`first`: before anything of the agent's in this turn."""
        texts = self._untold.pop(session, ())
        return [Send(Side.CLIENT, self._line(session, text, first=first)) for text in texts]

    def _line(self, session: str, text: str, *, first: bool) -> bytes:
        if self._notices:
            return acp.notice_line(session, "warning", "Plan", text)
        return acp.message_line(session, f"{text}\n\n" if first else f"\n\n{text}\n\n")
