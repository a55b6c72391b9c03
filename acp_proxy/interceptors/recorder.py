"""Writes one row per turn to the ledger, and announces what the ledger knows of a session that is opened.

The row is in the journal before the line that ended the turn goes on; everything else happens in the worker's thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Billing, Entry, Origin, SessionState
from acp_proxy.core.events import (
    ContextChanged,
    Event,
    Initialized,
    PlanReported,
    PromptDropped,
    SessionClosed,
    SessionInfoChanged,
    SessionOpened,
    SessionRequested,
    SessionRestored,
    TurnMetered,
    TurnStarted,
)
from acp_proxy.core.plans import billed_as
from acp_proxy.core.unfinished import Unfinished
from acp_proxy.interceptor import Interceptor
from acp_proxy.ledger import Row
from acp_proxy.ledger.worker import LedgerWorker

LONGEST_TITLE = 200  # characters; some agents make the whole first prompt the title
LONGEST_NAME = 200  # characters, as in a configuration
_FLUSH = 0.4  # seconds; the summary is due 0.5 s after the end
_LATE = 1.5  # seconds that the end itself may take, on a disk or a machine that stands still; interceptors have 2
_AWAY = 10_000_000_000  # nanoseconds without a turn, in which a session may have been used by another process
_PAUSE = 0.1  # seconds between two notes of what a running turn has cost: some agents tell it a hundred times a second


class Recorder(Interceptor):
    """`origin` holds the identity, and the agent's name as far as it is known before the agent tells.

    `agent` overrides the reported name. With `project_of` (path -> name; may block, is called in a thread) a session's
    project follows from its own working directory, and `origin.project` is for those whose directory is unknown.
    `announce` gets the answers of the ledger, in the event loop; `clock` is Unix time in nanoseconds; `process` names
    this run, where a budget counts by it. Without `titles` no session's is kept: it may repeat words of a prompt. With
    `billing_of` says how an agent is billed by the configuration, None where that says nothing. With
    `later` (seconds, function) what a running turn has cost is noted once in a while, without it each time.
    """

    event_types = frozenset(
        {
            Initialized,
            SessionRequested,
            SessionOpened,
            SessionInfoChanged,
            SessionClosed,
            TurnStarted,
            PromptDropped,
            ContextChanged,
            PlanReported,
            TurnMetered,
        }
    )

    def __init__(
        self,
        worker: LedgerWorker,
        origin: Origin,
        announce: Callable[[SessionRestored], None],
        *,
        agent: str | None = None,
        project_of: Callable[[Path], str] | None = None,
        process: str | None = None,
        titles: bool = True,
        billing_of: Callable[[str], Billing | None] = lambda _: None,
        lease_of: Callable[[str, str], str | None] = lambda _turn, _session: None,
        clock: Callable[[], int] = time.time_ns,
        later: Callable[[float, Callable[[], object]], object] | None = None,
    ) -> None:
        self._worker = worker
        self._billing_of = billing_of
        self._lease_of = lease_of
        self._origin = self._billed(_storable(replace(origin, agent=agent or origin.agent)))
        self._announce = announce
        self._agent = agent
        self._project_of = project_of
        self._clock = clock
        self._process = process
        self._titles = titles
        self._unfinished = Unfinished()
        self._later = later
        self._pausing = False
        self._latest: dict[str, ContextChanged] = {}  # by session: what is to be noted after the pause
        self._told: dict[str, int] = {}  # by session: when its agent's own cost was last booked here, or asked for
        self._projects: dict[str, str] = {}  # by session
        self._origins: dict[str, Origin] = {}  # by session, with these projects
        self._finding: dict[str, asyncio.Event] = {}  # sessions whose project is looked for

    def on_event(self, event: Event) -> Iterable[Effect]:
        match event:
            case ContextChanged(_, session, restored=False) if self._pausing:
                self._latest[session] = event
            case TurnStarted(at, session):
                self._follow(event)
                if at - self._told.get(session, at) >= _AWAY:
                    self._ask(session, again=True)
            case ContextChanged() | PromptDropped():
                self._follow(event)
            case TurnMetered(_, entry, state):
                if self._latest:
                    self._catch_up()
                self._unfinished.on_event(event)
                self._worker.append(self._row(entry, state))
                if state.agent_cost is not None:
                    self._told[entry.session] = entry.ended_at
            case PlanReported():
                self._hear_of_plan(event)
            case Initialized():
                self._meet(event)
            case SessionRequested(_, "load" | "resume", session):
                self._ask(session)
            case SessionOpened():
                self._unfinished.on_event(event)
                self._open(event)
            case SessionInfoChanged(at, session, str(title), titled=True) if self._titles:
                self._worker.note_session(self._origin, session, title[:LONGEST_TITLE], at)
            case SessionInfoChanged(at, session, cleared=True) if self._titles:
                self._worker.note_session(self._origin, session, None, at)
            case SessionClosed(_, session):
                self._follow(event)
                self._told.pop(session, None)
                self._finding.pop(session, None)
                self._projects.pop(session, None)
                self._origins.pop(session, None)
        return ()

    def _follow(self, event: Event) -> None:
        if self._latest:
            self._catch_up()
        self._note(event)

    def _note(self, event: Event) -> None:
        """Keep what is known by now of a turn that runs; then, if it was its cost, not for a while."""
        unfinished = self._unfinished.on_event(event)
        if unfinished is None:
            return
        self._worker.keep_open(self._row(unfinished, self._unfinished.state_of(event)))
        if self._later is not None and not self._pausing and isinstance(event, ContextChanged):
            self._pausing = True
            self._later(_PAUSE, self._go_on)

    def _go_on(self) -> None:
        self._pausing = False
        self._catch_up()

    def _catch_up(self) -> None:
        latest, self._latest = self._latest, {}
        for event in latest.values():
            self._note(event)

    async def aclose(self) -> None:
        """In a thread, but not in the loop's executor: the loop could not end where that can have none any more."""
        closed, loop = asyncio.Event(), asyncio.get_running_loop()

        def close() -> None:
            try:
                self._worker.close(_FLUSH)
            finally:
                with suppress(RuntimeError):  # the loop has ended in the meantime
                    loop.call_soon_threadsafe(closed.set)

        try:
            threading.Thread(target=close, name="acp-proxy end", daemon=True).start()
        except RuntimeError:  # no thread can be started
            self._worker.close(_FLUSH)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_LATE):
                await closed.wait()
        if not closed.is_set():
            self._worker.tell_left()

    def _row(self, entry: Entry, state: SessionState | None) -> Row:
        if state and state.title and (len(state.title) > LONGEST_TITLE or not self._titles):
            state = replace(state, title=state.title[:LONGEST_TITLE] if self._titles else None)
        return Row(self.origin_of(entry.session), entry, state, self._process, self._lease_of(entry.id, entry.session))

    async def origin_when_known(self, session: str, within: float) -> Origin:
        """`origin_of`, when the session's project has been found, or after so many seconds without it."""
        if (found := self._finding.get(session)) is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await found.wait()
        return self.origin_of(session)

    def origin_of(self, session: str) -> Origin:
        """The origin under which the rows of a session are booked."""
        if (origin := self._origins.get(session)) is not None:
            return origin
        if not (project := self._projects.get(session)):
            return self._origin
        origin = self._origins[session] = replace(self._origin, project=project)
        return origin

    def _meet(self, event: Initialized) -> None:
        self._origins.clear()
        named = replace(
            self._origin,
            agent=self._agent or event.agent.name or self._origin.agent,
            agent_version=event.agent.version,
            client=event.client.name,
        )
        self._origin = self._billed(_storable(named))

    def _billed(self, origin: Origin) -> Origin:
        return replace(origin, billing=self._billing_of(origin.agent))

    def _hear_of_plan(self, event: PlanReported) -> None:
        billing = billed_as(event.windows)
        if billing != self._origin.billing:
            self._origin = replace(self._origin, billing=billing)
            self._origins.clear()

    def _open(self, event: SessionOpened) -> None:
        if event.how == "fork":  # it goes on from its parent
            self._ask(event.session, event.parent)
        elif event.how == "new":  # of which a ledger knows nothing: an older one of its id is another one
            self._worker.open()
        if self._project_of and event.cwd:
            # Not the loop's executor, whose threads are waited for at the end: the path may be on a dead network.
            found = self._finding[event.session] = asyncio.Event()
            find = (event.session, Path(event.cwd), self._project_of, found, asyncio.get_running_loop())
            try:
                threading.Thread(target=self._find_project, args=find, name="acp-proxy project", daemon=True).start()
            except RuntimeError:  # no thread can be started: the name stays unknown
                del self._finding[event.session]

    def _find_project(
        self,
        session: str,
        cwd: Path,
        project_of: Callable[[Path], str],
        found: asyncio.Event,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        project = project_of(cwd)
        with suppress(RuntimeError):  # the loop has ended in the meantime
            loop.call_soon_threadsafe(self._found, session, project, found)

    def _found(self, session: str, project: str, found: asyncio.Event) -> None:
        found.set()
        if self._finding.get(session) is found:  # else the session was closed, or opened again elsewhere
            del self._finding[session]
            self._projects[session] = project
            self._origins.pop(session, None)

    def _ask(self, session: str, parent: str | None = None, *, again: bool = False) -> None:
        loop = asyncio.get_running_loop()

        def reply(state: SessionState | None) -> None:
            restored = SessionRestored(self._clock(), session, state, parent, again)
            with suppress(RuntimeError):  # the loop has ended in the meantime
                loop.call_soon_threadsafe(self._answered, restored)

        self._worker.state_of(self._origin, parent or session, reply)

    def _answered(self, restored: SessionRestored) -> None:
        if restored.state is not None and restored.state.agent_cost is not None:
            self._told[restored.session] = restored.at
        self._announce(restored)


def _storable(origin: Origin) -> Origin:
    """Names of the system may hold bytes that are no UTF-8, those of agents half a surrogate pair: no ledger may.

    A name of any length is in no index of PostgreSQL, and its rows would be refused.
    """
    names = {name: getattr(origin, name) for name in Origin.__struct_fields__ if name != "billing"}
    stored = {name: text[:LONGEST_NAME].encode("utf-8", "replace").decode() for name, text in names.items() if text}
    return replace(origin, **stored)
