"""Figures and names as people read them: tokens, money, aligned columns. Rounds for display only; light to import.

Names come from agents and models: `clean` keeps their control characters from the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from acp_proxy.core.money import NANO, Money, amount_text, rounded

AT_LEAST = "≥ "
_LEAST = "≥"  # of what is not ASCII the one that many figures have; one column wide
_AS_EMOJI = "\ufe0f"
_ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[]PX^_][^\x07\x1b\x9c]*(?:\x07|\x9c|\x1b\\)?"  # OSC and other strings: window title, links, clipboard
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)


def clean(text: str) -> str:
    """On one line, without escape sequences, control characters, or marks that turn the direction of writing."""
    if text.isprintable():  # as nearly all are
        return " ".join(text.split())
    plain = re.sub(_ESCAPES, "", text)
    return " ".join("".join(sign if sign.isprintable() else " " for sign in plain).split())


def tokens_text(tokens: int) -> str:
    """At most seven characters: `999,999`, `1.23M`, `45.6B`."""
    if tokens < 1_000_000:
        return f"{tokens:,}"
    scaled, unit = (tokens / 1e6, "M") if tokens < 999_500_000 else (tokens / 1e9, "B")
    decimals = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:,.{decimals}f}{unit}"


def percent_text(part: int, whole: int) -> str:
    """Rounded, but never to nothing or to all of it: `<1%`, `57%`, `>99%`; `-` of nothing."""
    if whole <= 0:
        return "-"
    if 0 < part * 100 < whole:
        return "<1%"
    percent = rounded(part * 100, whole)
    return ">99%" if percent == 100 and part < whole else f"{percent}%"


def counted(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def decimals_of(costs: Iterable[Money]) -> int:
    """How many decimals a column of such amounts is shown with, 2 or 4."""
    return 4 if max((abs(cost.nano) for cost in costs), default=0) < 10 * NANO else 2


def cost_text(costs: Sequence[Money], decimals: int = 4, *, at_least: bool = False, column: bool = True) -> str:
    """`$1.2346`, `≥ €0.01 + 3.00 credits`; `?` where no part is known, `-` where there is none to know.

    Each amount is as in `core.money.amount_text`.
    """
    if not costs:
        return "?" if at_least else "-"
    some = costs if len(costs) == 1 else sorted(costs, key=lambda cost: cost.currency)
    amounts = " + ".join([_amount(cost, decimals, column=column) for cost in some])
    return f"{AT_LEAST if at_least else ''}{amounts}"


def _amount(cost: Money, decimals: int, *, column: bool) -> str:
    """The currency may be whatever an agent calls it."""
    return amount_text(Money(cost.nano, _currency(cost.currency)), decimals, column=column)


@lru_cache(maxsize=64)  # few, in many lines
def _currency(name: str) -> str:
    return clean(name)[:12]


def context_level(used: int, size: int) -> str:
    """How full a context is: `normal`, `yellow` from 75 %, `orange` from 90 %, `red` above 95 %.

    The thresholds of ACP's draft on session usage; the same everywhere.
    """
    if used * 100 > size * 95:
        return "red"
    return "orange" if used * 100 >= size * 90 else "yellow" if used * 100 >= size * 75 else "normal"


def width_of(text: str) -> int:
    """Columns of a terminal."""
    if text.isascii() or text.replace(_LEAST, "").isascii():
        return len(text)
    from unicodedata import category, east_asian_width  # a library of its own, for what most tables do not have

    # Marks stand on the sign before, but for the one that makes an emoji of it: that makes it wide.
    return text.count(_AS_EMOJI) + sum(
        0 if category(sign) in ("Mn", "Me") else 2 if east_asian_width(sign) in "WF" else 1 for sign in text
    )


def cut(text: str, width: int) -> str:
    """At most `width` columns, with an ellipsis where something is missing.

    A name with a path loses its front first: it is the end that tells `@agentclientprotocol/claude-agent-acp` from
    `@agentclientprotocol/codex-acp`.
    """
    if width_of(text) <= width:
        return text
    if width <= 0:
        return ""
    if " " not in text and (slash := text.rfind("/", 0, -1)) > 0:
        while (before := text.rfind("/", 0, slash)) >= 0 and width_of(text[before:]) < width:
            slash = before
        text = f"…{text[slash:]}"
        if width_of(text) <= width:
            return text
    end, room = 0, width - 1
    while (room := room - width_of(text[end])) >= 0:
        end += 1
    return f"{text[:end].rstrip()}…"


def cut_apart(names: Sequence[str], width: int) -> list[str]:
    """Each as `cut`, but two that would look the same lose their middles instead."""
    short = {name: cut(name, width) for name in names}
    looks: dict[str, int] = {}
    for text in short.values():
        looks[text] = looks.get(text, 0) + 1
    return [short[name] if looks[short[name]] == 1 else _without_middle(name, width) for name in names]


def _without_middle(text: str, width: int) -> str:
    """More of the end than of the beginning."""
    if width_of(text) <= width:
        return text
    room, start, end = (width - 1) // 3, 0, len(text)
    left = width - 1 - room
    while (room := room - width_of(text[start])) >= 0:
        start += 1
    while end > start and (left := left - width_of(text[end - 1])) >= 0:
        end -= 1
    return f"{text[:start]}…{text[end:]}" if width > 0 else ""


def padded(text: str, width: int, *, right: bool = False) -> str:
    if text.isascii():
        return text.rjust(width) if right else text.ljust(width)
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Rows as lines, two spaces between columns; `right` says which columns are aligned to the right."""
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    shape = list(zip(widths, right, strict=True))
    lines = (
        "  ".join(padded(cell, width, right=to_right) for cell, (width, to_right) in zip(row, shape, strict=True))
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)
