"""Sums of days that begin some quarter hours before or after those of UTC, of which the ledger has sums. Only SQL.

A local day is one of UTC without the hours at one of its ends, and with such hours of the day before or after: these
are read in quarter hours, all else is not. What is subtracted was found by the same statement.
"""

from __future__ import annotations

from collections.abc import Callable

from acp_proxy.ledger.sums.buckets import A_DAY

# SQL for a day, a further condition and a further column -> SQL for keys, currency, counts, earliest, latest, and that.
Select = Callable[[str, str, str], str]

_COUNTS = tuple(f"c{number}" for number in range(16))
_NO_TIME = 2**63 - 1


def sums_of_days(select: Select, keys: int, day: int, ahead: int) -> str:
    """Of days that begin `ahead` quarter hours before those of UTC. The `day`th of so many keys is the number of a day.

    Takes the values of `select` for days of UTC, then for quarter hours from a day before to a day after, and then
    the first day and the end of days. Earliest and latest may be those of a neighbouring day.
    """
    hour = f"((t.bucket % {A_DAY}) + {A_DAY}) % {A_DAY}"  # a quarter hour of its day, also before 1970
    neighbours = f"{hour} >= {A_DAY - ahead}" if ahead > 0 else f"{hour} < {-ahead}"
    names = [f"k{number}" for number in range(keys)]
    columns = ", ".join([*names, "currency", *_COUNTS, "first_at", "last_at", "lines"])
    moved = [f"{name} + side.days" if number == day else name for number, name in enumerate(names)]
    lines = ", sum(line_count)"
    # Of a group without any nothing is left but what they cost in another currency.
    left = " OR ".join(f"sum({name}) <> 0" for name in ("lines", *_COUNTS))
    return f"""
        WITH whole ({columns}) AS ({select("t.bucket", "", lines)}),
            part ({columns}) AS ({select(f"(t.bucket - {hour}) / {A_DAY}", f"AND {neighbours}", lines)}),
            side (days, sign) AS (SELECT 0, -1 UNION ALL SELECT {1 if ahead > 0 else -1}, 1)
        SELECT {", ".join([*names, "currency"])}, {", ".join(f"sum({name})" for name in _COUNTS)},
            min(first_at), max(last_at)
        FROM (
            SELECT * FROM whole
            UNION ALL
            SELECT {", ".join(moved)}, currency, {", ".join(f"sign * {name}" for name in _COUNTS)},
                CASE WHEN sign > 0 THEN first_at ELSE {_NO_TIME} END,
                CASE WHEN sign > 0 THEN last_at ELSE {-_NO_TIME} END, sign * lines
            FROM part CROSS JOIN side
        ) found
        WHERE k{day} >= ? AND k{day} < ?
        GROUP BY {", ".join(str(number) for number in range(1, keys + 2))} HAVING {left}
    """
