"""Whether an agent that nobody has described counts per turn or since the session began."""

from __future__ import annotations

from typing import Literal

from acp_proxy.core.account import Ended


class ScopeGuess:
    """One agent, over all its sessions. Begins with `turn`; `reason` says why it is what it is."""

    def __init__(self) -> None:
        self.scope: Literal["turn", "session"] = "turn"
        self.reason = "unknown agent: counters taken per turn"
        self._settled = False

    def judge(self, before: Ended | None, now: Ended) -> Literal["turn", "session"]:
        """The scope, after one more turn of a session.

        Counters that never fall mark `session` when they grew by more prompt than the context did: turns of their
        own would each begin anew. A later fall takes that back for good, since every session would have restarted.
        """
        if self._settled or before is None:
            return self.scope
        if self.scope == "session":
            if not now.partition.covers(before.partition):
                self._settle("unknown agent: counters fell, taken per turn again")
        elif _outgrew(before, now) and now.partition.covers(before.partition):
            self.scope = "session"
            self.reason = "unknown agent: counters grew by more than the context, taken as cumulative"
        return self.scope

    def _settle(self, reason: str) -> None:
        self.scope, self.reason, self._settled = "turn", reason, True


def _outgrew(before: Ended, now: Ended) -> bool:
    if now.context is None or before.context is None:
        return False
    return now.partition.prompt - before.partition.prompt > max(0, now.context - before.context)
