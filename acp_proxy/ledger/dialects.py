"""The differences between the SQL of the backends; all other SQL is shared, with `?` for values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

# What a server's clock is ahead of a machine's. By less than five seconds it is not, for nobody's is exact, and an
# answer takes its time on the way.
_AHEAD = """
(SELECT CASE WHEN abs(ahead) < 5000000000 THEN 0 ELSE ahead END FROM (
    SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000000 AS BIGINT) - CAST(? AS BIGINT) AS ahead
) difference)
"""


class Dialect(Struct, frozen=True):
    """The parts of a statement in which the backends differ."""

    holds: str  # whether a column, to be filled in, holds a text
    glob: str  # the operator that compares with what `pattern` makes of one with `*`
    pattern: Callable[[str], str]
    serial: bool  # whether those who write come one after the other
    remote: bool  # whether each question is a journey: few that read more are better than many
    ranges_joined: bool  # whether several ranges of an index are read best as a table that is joined with another one
    by_session: str  # behind the turns, where those of one session are wanted
    by_process: str  # and those of one run of the proxy
    definition: Callable[[str], str]  # of a table as SQLite has it, in its own words
    clock: Callable[[], int] | None = None  # this machine's (Unix ns), where leases are by another one: the server's

    def ahead(self) -> tuple[str, Sequence[int]]:
        """An expression for how far (ns) the clock by which leases are kept is ahead of this machine's."""
        return ("0", []) if self.clock is None else (_AHEAD, [self.clock()])

    @property
    def in_title(self) -> str:
        """Whether a session's title holds a casefolded text."""
        return self.holds.format("s.title_folded")


def _of_postgres(definition: str) -> str:
    """Text sorts by its bytes, as everywhere else: rows of several organisations are merged."""
    if "COLLATE" in definition:
        return definition
    definition = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', definition)
    return re.sub(r"\bINTEGER\b", "BIGINT", definition).replace(") STRICT, WITHOUT ROWID", ")")


SQLITE = Dialect(
    holds="instr({}, ?) > 0",
    glob="GLOB",
    pattern=lambda pattern: re.sub(r"[\[?]", r"[\g<0>]", pattern),
    serial=True,
    remote=False,
    ranges_joined=True,
    by_session="INDEXED BY turn_by_session",  # it would go through all of them in their order
    by_process="INDEXED BY turn_by_process",
    definition=str,
)
POSTGRES = Dialect(
    holds="strpos({}, ?) > 0",
    glob="LIKE",
    pattern=lambda pattern: re.sub(r"[\\%_]", r"\\\g<0>", pattern).replace("*", "%"),
    serial=False,
    remote=True,
    ranges_joined=False,  # it cannot tell how large they are, and would rather read all
    by_session="",
    by_process="",
    definition=_of_postgres,
)


def same(column: str, value: object) -> str:
    """A comparison that finds what has no value with None, which then takes no place among the values."""
    return f"{column} IS NULL" if value is None else f"{column} = ?"
