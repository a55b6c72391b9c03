"""Windows of a plan, such as five hours or a week: how much of each is used, and until when.

A plan is an account's: another machine, and the plan's own client, move it too. What an agent tells is read in
`core/meter/plan_windows.py`.
"""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.windows import DAY, HOUR, SECOND

FULL = 1_000_000  # of `used`
THRESHOLDS = (75, 90, 95)  # percent at which people are told
OVERAGE = "in_use"  # what is used now is paid beside the plan

_LENGTHS = {"five_hour": 5 * HOUR, "seven_day": 7 * DAY}  # also of windows whose names begin so: seven_day_opus
_SAME = 600 * SECOND  # by which the reset of one window may differ from one message to the next


class PlanWindow(Struct, frozen=True):
    """As an agent told it. Times are Unix ns; None is unknown. Words are the agent's own, of which any may be new."""

    window: str  # five_hour, seven_day, seven_day_opus, …
    used: int | None  # in millionths of it: may be above `FULL` where more is allowed and paid
    status: str | None  # allowed, allowed_warning, rejected, …
    resets_at: int | None
    overage: str | None  # `OVERAGE`, or whether there would be any: allowed, rejected, …
    seen_at: int


class PlanState(Struct, frozen=True):
    """The latest of one window, and what was first seen of it since it was reset."""

    user: str
    agent: str
    told: PlanWindow
    first_at: int
    first_used: int | None

    def is_over(self, now: int) -> bool:
        """Whether it was reset since: then it is not known how much is used."""
        return self.told.resets_at is not None and self.told.resets_at <= now

    def used(self, now: int) -> int | None:
        return None if self.is_over(now) else self.told.used

    def reached(self) -> int | None:
        """The highest of `THRESHOLDS` that it has reached."""
        used = self.told.used
        return None if used is None else max((each for each in THRESHOLDS if used * 100 >= each * FULL), default=None)

    def full_at(self, now: int) -> int | None:
        """When all of it will be used at its pace so far; None where that is later than its reset, or unknown.

        Of one that is full it is when that was seen.
        """
        used, resets_at, seen_at = self.told.used, self.told.resets_at, self.told.seen_at
        if used is None or self.is_over(now):
            return None
        if used >= FULL:
            return seen_at
        begun, before = self._begin()
        took, grew = seen_at - begun, used - before
        if took <= 0 or grew <= 0:
            return None
        full = seen_at + (FULL - used) * took // grew
        return None if full >= _NEVER or (resets_at is not None and full >= resets_at) else full

    def _begin(self) -> tuple[int, int]:
        """Since when it is used, and how much of it was used then."""
        length = length_of(self.told.window)
        if length is not None and self.told.resets_at is not None:
            return self.told.resets_at - length, 0
        return self.first_at, self.first_used or 0


_NEVER = 2**63  # ns: beyond what a ledger's column holds


def length_of(window: str) -> int | None:
    """In ns, where the name tells it."""
    return next((length for name, length in _LENGTHS.items() if window.startswith(name)), None)


def is_news(told: PlanWindow, before: PlanWindow | None) -> bool:
    """Whether a hundredth more or less is used, or anything else changed."""
    if before is None or (told.status, told.overage) != (before.status, before.overage):
        return True
    if not same_reset(told.resets_at, before.resets_at):
        return True
    if told.used is None or before.used is None:
        return told.used is not before.used
    return abs(told.used - before.used) * 100 >= FULL


def same_reset(one: int | None, other: int | None) -> bool:
    """Whether both are that of one window: agents and servers round it in their own ways."""
    return one is other if one is None or other is None else abs(one - other) < _SAME
