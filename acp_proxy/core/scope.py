"""Subjects that a budget is about: patterns over who asks and what is used. Compared exactly, but for `*`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Dimension = Literal["user", "team", "project", "agent", "model"]
DIMENSIONS: tuple[Dimension, ...] = ("user", "team", "project", "agent", "model")

PLAN = "plan"  # the billing of what a seat has paid


class Scope(Struct, frozen=True):
    """Values or patterns with `*` for any text; one of each that is given must match, and empty is any."""

    user: tuple[str, ...] = ()
    team: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    without_plans: bool = False  # what is used under a plan, and billed to nobody, is out of scope

    def of(self, dimension: Dimension) -> tuple[str, ...]:
        patterns: tuple[str, ...] = getattr(self, dimension)
        return patterns

    def accepts(self, dimension: Dimension, value: str | None) -> bool:
        """A dimension without a value, such as no team, matches only if the scope does not name that dimension."""
        patterns = self.of(dimension)
        return not patterns or (value is not None and any(fits(pattern, value) for pattern in patterns))

    def leaves_out(self, billing: str | None) -> bool:
        return self.without_plans and billing == PLAN

    @property
    def texts(self) -> Mapping[str, list[str]]:
        """The given values, by the keys of a configuration."""
        return {dimension: list(self.of(dimension)) for dimension in DIMENSIONS if self.of(dimension)}


EVERYTHING = Scope()


class Subject(Struct, frozen=True):
    """The user, agent, model and so on of a prompt. `model` is concrete, or None if only an alias or nothing is known.

    `session` is the ACP id; None, as for a question without a session, stands for a session without rows. `process`
    names one run of the proxy, for a budget given as its flag.
    """

    organisation: str
    user: str
    team: str | None
    project: str | None
    host: str
    agent: str
    model: str | None = None
    session: str | None = None
    process: str | None = None
    billing: str | None = None  # as far as it is known

    def of(self, dimension: Dimension) -> str | None:
        value: str | None = getattr(self, dimension)
        return value


def fits(pattern: str, value: str) -> bool:
    """Whether `value` is `pattern`, where each `*` stands for any text, also none."""
    first, *middle = pattern.split("*")
    if not middle:
        return pattern == value
    last = middle.pop()
    if len(value) < len(first) + len(last) or not (value.startswith(first) and value.endswith(last)):
        return False
    at, end = len(first), len(value) - len(last)
    for part in middle:  # the first place is the best, and a pattern of `re` would try all
        at = value.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True
