"""Databases with bytes that the agent never wrote: readers tell what they can, or one error says why not."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.books import Call, NotUnderstood, databases, goose, opencode
from tests.books.served import DATABASES

RECORDINGS = sorted(DATABASES.glob("*/*.db"))


@given(
    recording=st.sampled_from(RECORDINGS),
    damage=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=20),
    kept=st.floats(0.3, 1),
)
def test_a_damaged_database_is_read_or_unreadable_and_no_file_is_made(
    recording: Path, damage: list[tuple[float, int]], kept: float
) -> None:
    content = bytearray(recording.read_bytes())
    for where, byte in damage:
        content[int(where * len(content))] = byte
    reader = goose.read if recording.parent.name.startswith("goose") else opencode.read
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "agent.db")
        path.write_bytes(content[: int(kept * len(content))])
        try:
            with databases.reading(path, path.parent) as connection:
                found = list(reader(connection))
        except databases.DatabaseUnreadableError:
            found = []
        assert list(path.parent.iterdir()) == [path]
    for record in found:
        assert _is_sound(record)


def _is_sound(record: Call | NotUnderstood) -> bool:
    texts = [record.version]
    if isinstance(record, Call):
        texts += [record.parent, record.model, record.cwd]
        return all(text is None or isinstance(text, str) for text in texts) and min(_counts(record)) >= 0
    return record.version is None or isinstance(record.version, str)


def _counts(call: Call) -> tuple[int, ...]:
    usage = call.usage
    return call.at, usage.input, usage.cached_read, usage.cached_write, usage.output, usage.thought
