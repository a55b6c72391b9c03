"""When tools of a session ran, and when permission was waited for: kinds and times, no names and no arguments."""

from __future__ import annotations

from typing import Any

from acp_proxy.core.entry import MOST_CALLS, TOOL_KINDS, ToolCall, ToolSum, Work

_MILLI = 10**6  # ns
_MOST = 1024  # calls at a time that are followed
_OVER = ("completed", "failed")  # statuses of a call that ended
_KINDS = frozenset(TOOL_KINDS)


class _Call:
    __slots__ = ("ended", "kind", "outcome", "started")

    def __init__(self, started: int | None) -> None:
        self.kind = "other"
        self.started = started
        self.ended: int | None = None
        self.outcome: Any = None


class ToolTimes:
    """Of the turn that a session is at. Times are Unix ns."""

    __slots__ = ("_asked", "_busy", "_calls", "_changed", "_first", "_folded", "_running", "_waited")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A turn begins, and no other runs: what was told between two of them is of none."""
        self._calls: dict[str, _Call] = {}
        self._first: list[_Call] = []
        self._folded: dict[str, list[int]] = {}  # of calls that are no longer followed, as `ToolSum` has it
        self._running = 0
        self._asked = 0  # requests for permission that are open
        self._busy = self._waited = 0  # ns
        self._changed = 0

    def saw(self, call: str, kind: Any, status: Any, at: int, *, known: bool) -> None:
        """An update of a call. One that is `known` and not of this turn ended with an earlier one."""
        found = self._calls.get(call)
        if found is None:
            if known:
                return
            # One that is told only when it is over took nobody knows how long.
            found = self._calls[call] = _Call(None if status in _OVER else at)
            if len(self._first) < MOST_CALLS:
                self._first.append(found)
            if len(self._calls) > _MOST:
                self._give_up_one()
            self._pass(at)
            self._running += 1
        if kind is not None and isinstance(kind, str) and kind in _KINDS:
            found.kind = kind
        if status in _OVER and found.outcome is None:
            found.outcome, found.ended = status, at
            self._pass(at)
            self._running -= 1

    def asked(self, at: int) -> None:
        """Permission was requested."""
        self._pass(at)
        self._asked += 1

    def answered(self, at: int) -> None:
        self._pass(at)
        self._asked = max(0, self._asked - 1)

    def taken(self, parent: str | None, started_at: int, at: int) -> Work | None:
        """What there was in the turn that began at a time and ends now; None where there was nothing."""
        if not self._first and not self._waited and not self._asked:
            return None if parent is None else Work(parent)
        self._pass(at)
        for call in self._calls.values():
            self._fold(call)
        calls = tuple([_as_kept(call, started_at, at) for call in self._first])
        sums = tuple([ToolSum(kind, *counts) for kind, counts in sorted(self._folded.items())])
        work = Work(parent, calls, sums, self._busy // _MILLI, self._waited // _MILLI)
        self.begin()
        return work

    def _pass(self, at: int) -> None:
        """The time since the last change was spent on what was going on then: waiting, where both were."""
        passed = max(0, at - self._changed)
        if self._asked:
            self._waited += passed
        elif self._running:
            self._busy += passed
        self._changed = at

    def _give_up_one(self) -> None:
        call = self._calls.pop(next(iter(self._calls)))
        self._fold(call)
        if call.outcome is None:
            self._running -= 1

    def _fold(self, call: _Call) -> None:
        counts = self._folded.setdefault(call.kind, [0, 0, 0])
        counts[0] += 1
        counts[1] += call.outcome == "failed"
        counts[2] += _took(call) or 0


def _as_kept(call: _Call, started_at: int, at: int) -> ToolCall:
    began = call.started if call.started is not None else call.ended if call.ended is not None else at
    return ToolCall(call.kind, max(0, began - started_at) // _MILLI, _took(call), call.outcome)


def _took(call: _Call) -> int | None:
    """Milliseconds."""
    if call.started is None or call.ended is None:
        return None
    return max(0, call.ended - call.started) // _MILLI
