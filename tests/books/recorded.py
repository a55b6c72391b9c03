"""Homes that real agents left behind, each with what the model server served meanwhile (`served.jsonl`).

`what` in it tells a call of the conversation (`main`, `subagent`) from what the agent asked for itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.core.usage import Usage

DATA = Path(__file__).parent / "data"

Read = Callable[[Iterable[bytes]], Iterator[Call | NotUnderstood]]
Files = Callable[[Path, Mapping[str, str]], Iterator[Path]]
Paid = tuple[str | None, str | None, Usage]  # session, model, tokens


class Served(Struct, frozen=True):
    """What the model server served in one call; `usage` is None where it was cut short before it told."""

    what: str
    session: str | None
    model: str | None  # None: the agent does not tell it
    usage: Usage | None


def recordings(agent: str) -> list[Path]:
    found = sorted((DATA / agent).iterdir())
    assert found
    return found


def served(recording: Path) -> list[Served]:
    rows = [json.loads(line) for line in (recording / "served.jsonl").read_text(encoding="utf-8").splitlines()]
    counters = Usage.__struct_fields__
    return [
        Served(
            row["what"],
            row["session"],
            row["model"],
            None if row["input"] is None else Usage(**{name: row[name] for name in counters}),
        )
        for row in rows
    ]


def calls(paths: Iterable[Path], read: Read) -> list[Call]:
    """Each call once, as the larger of what was told of it."""
    found: dict[str, Call] = {}
    for path in paths:
        with path.open("rb") as book:
            for told in read(book):
                assert isinstance(told, Call), f"{path.name}: {told}"
                if told.id not in found or told.usage.total > found[told.id].usage.total:
                    found[told.id] = told
    return list(found.values())


def paid(of: Iterable[Call]) -> Counter[Paid]:
    return Counter((call.session, call.model, call.usage) for call in of)
