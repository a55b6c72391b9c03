"""The sessions of a connection: their open turns, models and titles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acp_proxy.core.acp import Ending, Info, ending
from acp_proxy.core.conversation.turns import OpenTurn, SessionCounts
from acp_proxy.core.events import (
    AnsweredLate,
    Event,
    ModelSelected,
    PromptDropped,
    SessionInfoChanged,
    Turn,
    TurnStarted,
)
from acp_proxy.core.jsonrpc import Response
from acp_proxy.core.stop_reasons import CANCELLED, FAILED


class Session:
    """`root` is the session itself, or for a subagent's session the one that the user sees."""

    __slots__ = (
        "active",
        "child",
        "children",
        "closed",
        "counted",
        "id",
        "info",
        "left",
        "model",
        "opened",
        "replays",
        "root",
        "run",
        "turns",
        "waiting",
    )

    def __init__(self, id: str, root: Session | None = None) -> None:
        self.id = id
        self.root: Session = root or self
        self.child = id if root else None  # its id, where it is a subagent's
        self.children: list[Session] = []  # all subagents', of a root
        self.opened = False  # by a response, not only named by an update
        self.replays = 0  # requests to load or resume it that are not answered: what comes is history
        self.model: str | None = None
        self.info = Info()
        self.turns: list[OpenTurn] = []  # started, oldest first; a subagent's are among its root's
        self.counted: SessionCounts = root.counted if root else SessionCounts()
        self.waiting: list[OpenTurn] = []  # v2: prompts that are not part of a run yet
        self.run: OpenTurn | None = None  # v2: the turn that the next idle ends
        self.active = False  # v2: running, but not as a turn: a subagent, or a snapshot during a replay
        self.left: list[OpenTurn] = []  # ended without an answer to their prompts, which may still come; of a root
        self.closed: bool | None = None  # by its client, while such answers may come; True: for good

    @property
    def current(self) -> Turn | None:
        """The turn that the agent is working on: prompts queue, the oldest comes first."""
        first = self._first
        return None if first is None else first.turn

    @property
    def _first(self) -> OpenTurn | None:
        """The oldest that is not overtaken, else the oldest."""
        turns = self.root.turns
        for turn in turns:
            if not turn.overtaken:
                return turn
        return turns[0] if turns else None

    @property
    def replayed(self) -> bool:
        """Whether what comes is history."""
        return self.replays > 0 or self.root.replays > 0

    @property
    def busy(self) -> bool:
        return bool(self.turns or self.waiting or self.run)

    @property
    def works(self) -> bool:
        """Whether there is anything that `leave_all` ends."""
        return self.busy or any(child.busy for child in self.children)

    @property
    def prompts(self) -> list[OpenTurn]:
        """Turns that only the answers to their prompts end, oldest first; of a root."""
        runs = [session.run for session in (self, *self.children)]
        return [turn for turn in self.turns if turn not in runs]

    def start(self, turn: OpenTurn, at: int) -> TurnStarted:
        turn.since = self.counted.now()
        if not self.root.turns:
            self.counted.tools.begin()
        self.root.turns.append(turn)
        return TurnStarted(at, self.root.id, turn.turn)

    def end(self, turn: OpenTurn, at: int, how: Ending, *, owed: bool = False) -> list[Event]:
        """End a turn; one that waited starts just before. One that is over already does not end again.

        `owed`: the answer to its prompt may still come.
        """
        events: list[Event] = []
        if turn in self.waiting:
            self.waiting.remove(turn)
            events.append(self.start(turn, at))
        root = self.root
        if turn not in root.turns:
            return []
        behind = turn is not self._first and not self._overtakes(turn, how)
        events.append(turn.ended(at, how, self.counted, behind=behind, owed=owed))
        if not behind:
            events += self._pass(turn, at)
        root.turns.remove(turn)
        if self.run is turn:
            self.run = None
        return events

    def _overtakes(self, turn: OpenTurn, how: Ending) -> bool:
        """Whether a prompt was worked on although older ones are open: an agent of v1 may never answer these.

        One that failed, was cancelled or came to nothing has waited, or was refused.
        """
        finished = how.stop_reason not in (CANCELLED, FAILED)
        worked = how.counters is not None or turn.worked(self.counted)
        of_v1 = self.run is None and self.child is None
        return finished and worked and of_v1 and not turn.overtaken

    def _pass(self, turn: OpenTurn, at: int) -> Iterator[Event]:
        """What was counted while it was worked on is no other's: newer ones begin now, older ones are overtaken."""
        turns, now = self.root.turns, self.counted.now()
        place = turns.index(turn)
        for each in turns[place + 1 :]:
            each.since = now
        for each in turns[:place]:
            if not each.overtaken:
                yield PromptDropped(at, self.root.id, each.turn)
            each.overtaken, each.since = True, each.since.plus(now.since(turn.since))

    def leave_all(self, at: int) -> Iterator[Event]:
        """End what the agent works on no more, whatever it still answers."""
        sessions = (self, *self.children)
        for session in sessions:
            if session.run is not None:
                yield from session.leave([session.run], at)
        yield from self.leave(self.turns, at)
        for session in sessions:
            yield from session.leave(session.waiting, at)

    def leave(self, turns: Iterable[OpenTurn], at: int) -> list[Event]:
        """End these, oldest first, with what is known of them."""
        events: list[Event] = []
        for turn in list(turns):
            owed = turn.turn.kind == "turn" and not turn.accepted
            ended = self.end(turn, at, Ending(CANCELLED), owed=owed)
            if ended and owed:
                self.root.left.append(turn)
            events += ended
        return events

    def answered_late(self, turn: OpenTurn, response: Response, at: int) -> list[Event]:
        """The answer to the prompt of a turn that was left: all that it says is what the turn used."""
        self.root.left.remove(turn)
        told = ending(response.result)
        used = told.counters or told.quota
        return [] if used is None else [AnsweredLate(at, self.root.id, turn.turn, used)]

    def take_prompt(self) -> OpenTurn | None:
        """The prompt that starts a run: an accepted one, though `running` may come before it is accepted."""
        prompt = next((prompt for prompt in self.waiting if prompt.accepted), next(iter(self.waiting), None))
        if prompt is not None:
            self.waiting.remove(prompt)
        return prompt

    def forget(self, turn: OpenTurn, at: int) -> list[Event]:
        """Forget a prompt that was refused before it was part of a run."""
        if turn not in self.waiting:
            return []
        self.waiting.remove(turn)
        return [PromptDropped(at, self.root.id, turn.turn)]

    def drop_absorbed(self, at: int) -> list[Event]:
        """Forget the prompts that went into a run that is over: the run was one turn."""
        absorbed = [prompt for prompt in self.waiting if prompt.accepted]
        self.waiting = [prompt for prompt in self.waiting if not prompt.accepted]
        return [PromptDropped(at, self.root.id, prompt.turn) for prompt in absorbed]

    def choose(self, model: str | None, at: int, *, asked: bool = False) -> list[Event]:
        """Its model from now on, if one is named. The one that it had is news only where the client `asked` for it.

        A subagent's model is not reported.
        """
        again = model == self.model
        if model is None or (again and not asked):
            return []
        self.model = model
        return [] if self.child else [ModelSelected(at, self.id, model, again)]

    def rename(self, info: Info, at: int, *, titled: bool, cleared: bool = False) -> list[Event]:
        self.info = info
        merged = info.title, info.updated_at, info.meta
        return [] if self.child else [SessionInfoChanged(at, self.id, *merged, cleared, titled)]


class Sessions:
    """The sessions of one connection, by id."""

    def __init__(self) -> None:
        self._known: dict[str, Session] = {}
        self.forks = 0  # open requests: until answered, a session not heard of before may be a fork's history

    def __iter__(self) -> Iterator[Session]:
        return iter(self._known.values())

    def get(self, id: str) -> Session | None:
        return self._known.get(id)

    def named(self, id: str) -> Session:
        """Agents name a session before the response that opens it, so the first word of it makes it known."""
        session = self._known.get(id)
        if session is None:
            session = self._known[id] = Session(id)
        return session

    def add_child(self, id: str, root: Session) -> Session:
        child = self._known[id] = Session(id, root)
        root.children.append(child)
        return child

    def drop(self, root: Session) -> None:
        """A session with its subagents'."""
        for session in (root, *root.children):
            if self._known.get(session.id) is session:
                del self._known[session.id]

    def replays(self, session: Session) -> bool:
        """Whether what comes of a session is history."""
        if session.replayed:
            return True
        return self.forks > 0 and not (session.opened or session.child or session.busy)
