"""What is known of one session on this connection: its open turns, its model, what it is called."""

from __future__ import annotations

from acp_proxy.core.acp import Ending, Info
from acp_proxy.core.events import Event, TurnStarted
from acp_proxy.core.turns import OpenTurn


class Session:
    """`root` is the session itself, or for a subagent's session the one that the user sees."""

    __slots__ = ("active", "id", "info", "model", "opened", "replays", "root", "run", "turns", "waiting")

    def __init__(self, id: str, root: Session | None = None) -> None:
        self.id = id
        self.root: Session = root or self
        self.opened = False  # by a response, not only named by an update
        self.replays = 0  # requests to load or resume it that are not answered: what comes is history
        self.model: str | None = None
        self.info = Info()
        self.turns: list[OpenTurn] = []  # started, oldest first; a subagent's are among its root's
        self.waiting: list[OpenTurn] = []  # v2: prompts that are not part of a run yet
        self.run: OpenTurn | None = None  # v2: the turn that the next idle ends
        self.active = False  # v2: running, but not as a turn: a subagent, or a snapshot during a replay

    @property
    def child(self) -> str | None:
        return None if self.root is self else self.id

    @property
    def current(self) -> OpenTurn | None:
        """The turn that the agent is working on: prompts queue, the oldest comes first."""
        turns = self.root.turns
        return turns[0] if turns else None

    @property
    def busy(self) -> bool:
        return bool(self.turns or self.waiting or self.run)

    def start(self, turn: OpenTurn, at: int) -> TurnStarted:
        self.root.turns.append(turn)
        return TurnStarted(at, self.root.id, turn.turn)

    def end(self, turn: OpenTurn, at: int, ending: Ending) -> list[Event]:
        """End a turn; one that waited starts just before. None that is over already ends again."""
        events: list[Event] = []
        if turn in self.waiting:
            self.waiting.remove(turn)
            events.append(self.start(turn, at))
        if turn not in self.root.turns:
            return []
        self.root.turns.remove(turn)
        if self.run is turn:
            self.run = None
        return [*events, turn.ended(at, ending)]

    def take_prompt(self) -> OpenTurn | None:
        """The prompt that starts a run: an accepted one, though `running` may come before it is accepted."""
        prompt = next((prompt for prompt in self.waiting if prompt.accepted), next(iter(self.waiting), None))
        if prompt is not None:
            self.waiting.remove(prompt)
        return prompt

    def drop_absorbed(self) -> None:
        """Forget the prompts that went into a run that is over: the run was one turn."""
        self.waiting = [prompt for prompt in self.waiting if not prompt.accepted]
