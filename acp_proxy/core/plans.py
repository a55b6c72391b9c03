"""Windows of a plan, such as five hours or a week: how much of each is used, and until when.

A plan is an account's: another machine, and the plan's own client, move it too. What an agent tells is read in
`core/meter/plan_windows.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from acp_proxy.core.windows import DAY, HOUR, SECOND

FULL = 1_000_000  # of `used`
THRESHOLDS = (75, 90, 95)  # percent at which people are told, unless the configuration says otherwise
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


class PlanChange(Struct, frozen=True):
    """What was told of one window when that was news."""

    user: str
    agent: str
    told: PlanWindow


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

    def reached(self, thresholds: Sequence[int]) -> int | None:
        """The highest of these percents that it has reached."""
        used = self.told.used
        return None if used is None else max((each for each in thresholds if used * 100 >= each * FULL), default=None)

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

    @property
    def begun_at(self) -> int:
        """Since when it is used: since it was reset, if its name says how long it is, else since it was seen first."""
        return self._begin()[0]

    def _begin(self) -> tuple[int, int]:
        """Since when it is used, and how much of it was used then."""
        length = length_of(self.told.window)
        if length is not None and self.told.resets_at is not None:
            return self.told.resets_at - length, 0
        return self.first_at, self.first_used or 0


_NEVER = 2**63  # ns: beyond what a ledger's column holds


def followed(before: PlanState | None, user: str, agent: str, told: PlanWindow) -> PlanState:
    """How a window stands after a message that may be older than what is known. Messages may tell parts of it."""
    if before is not None and told.seen_at <= before.told.seen_at:
        return before
    if before is None or _is_another(told, before.told):
        return PlanState(user, agent, told, told.seen_at, told.used)
    last = before.told
    used = last.used if told.used is None else told.used
    # Its reset stays as it was told first: that is what a window is known by.
    resets_at = told.resets_at if last.resets_at is None else last.resets_at
    now = PlanWindow(told.window, used, told.status, resets_at, told.overage, told.seen_at)
    if before.first_used is None:
        return PlanState(user, agent, now, told.seen_at, used)
    return PlanState(user, agent, now, before.first_at, before.first_used)


def _is_another(told: PlanWindow, last: PlanWindow) -> bool:
    """Whether it was reset in between."""
    if last.resets_at is not None and last.resets_at <= told.seen_at:
        return True
    if told.resets_at is not None and last.resets_at is not None:
        return not same_reset(told.resets_at, last.resets_at)
    return told.used is not None and last.used is not None and (last.used - told.used) * 100 >= FULL


def billed_as(windows: Sequence[PlanWindow]) -> Literal["plan", "tokens"]:
    """What an agent tells windows of is a plan, whatever the configuration thinks; but for what is paid beside it."""
    return "tokens" if windows[-1].overage == OVERAGE else "plan"


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
