"""Whether an agent that nobody has described counts per turn or since the session began."""

from __future__ import annotations

from typing import Literal

from acp_proxy.core.account import Ended

PER_TURN = "unknown agent: counters taken per turn"


class ScopeGuess:
    """One agent, over all its sessions. Begins with `turn`; `reason` says why it is what it is."""

    def __init__(self) -> None:
        self.scope: Literal["turn", "session"] = "turn"
        self.reason = PER_TURN
        self._settled = False

    def judge(self, before: Ended | None, now: Ended, *, loaded: bool) -> Literal["turn", "session"]:
        """The scope, after one more turn of a session, or after the first one of a session that was `loaded`.

        Counters that never fall mark `session` when they grew by more prompt than the turn can have sent: turns of
        their own would each begin anew. A later fall takes that back for good, since every session would have
        restarted.
        """
        if self._settled:
            return self.scope
        if before is None:
            if self.scope == "turn" and loaded and _is_of_many(now):
                self._goes_on()
        elif self.scope == "session":
            if not now.partition.covers(before.partition):
                self._settle("unknown agent: counters fell, taken per turn again")
        elif _outgrew(before, now) and now.partition.covers(before.partition):
            self._goes_on()
        return self.scope

    def _goes_on(self) -> None:
        self.scope = "session"
        self.reason = "unknown agent: counters grew by more than the context, taken as cumulative"

    def _settle(self, reason: str) -> None:
        self.scope, self.reason, self._settled = "turn", reason, True


def _outgrew(before: Ended, now: Ended) -> bool:
    """Whether a turn of its own cannot have sent so much: a sum over several calls is no sign by itself.

    One call sends what the last one sent, and what came to the context since. Where that one is not known, it sends
    the context. Half of one call is left for what agents guess and do not show.
    """
    if now.context is None or before.context is None or not before.partition.prompt:
        return False
    sent = before.partition.prompt + max(0, now.context - before.context)
    margin = min(now.context, before.partition.prompt) // 2
    if before.calls > 1 and now.calls > 1:
        sent = now.context
    return now.partition.prompt > now.calls * sent + margin


def _is_of_many(now: Ended) -> bool:
    """Whether it is far more than all calls of the turn can have sent."""
    return now.context is not None and now.partition.prompt > 2 * now.calls * now.context
