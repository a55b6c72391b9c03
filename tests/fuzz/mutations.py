"""Inputs that are nearly right: what is in the corpus and in recordings, cut, doubled, spliced and bent."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

HERE = Path(__file__).parent
TRANSCRIPTS = HERE.parent / "transcripts"
_RECORDED = 12  # lines of each recording, spread over it
_LONGEST = 2000  # bytes; longer lines are left to tests that are about length
_LONGEST_CHANGE = 30  # bytes

_ODD = st.sampled_from(
    [
        *(
            b"",
            b"\n",
            b"\r\n",
            b"\0",
            b"\xff",
            b"\xc3",
            b"\xed\xa0\x80",
            b"\\ud800",
            b"\x1b]0;x\x07",
            "\u202e".encode(),
        ),
        *(
            b"{",
            b"}",
            b"[",
            b"]",
            b'"',
            b":",
            b",",
            b"null",
            b"{}",
            b"[]",
            b'"x"',
            b"true",
            b"-0",
            b"1e999",
            b"1E-400",
            b"NaN",
        ),
        *(b"9" * 20, b"9" * 400, b"-1", b"0.1", b"[" * 2000, b'{"a":' * 2000, b"/../", b"%00", b"%ff", b"' OR 1=1 --"),
    ]
)


def seeds(target: str) -> list[bytes]:
    """The files of the corpus for `target`, the smallest first."""
    return sorted((path.read_bytes() for path in (HERE / "corpus" / target).iterdir()), key=len)


def recorded_lines() -> list[bytes]:
    """Lines that released agents and clients really said."""
    found: dict[bytes, None] = {}
    for recording in sorted(TRANSCRIPTS.glob("*/*.jsonl")):
        records = recording.read_text(encoding="utf-8").splitlines()
        for record in records[:: max(1, len(records) // _RECORDED)]:
            raw = json.loads(record)["raw"].encode()
            if len(raw) <= _LONGEST:
                found[raw] = None
    return list(found)


def mutated(samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Some of the samples as they are, most of them changed in up to four places."""
    changes = st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 2 * _LONGEST_CHANGE), _ODD | st.sampled_from(samples)), max_size=4
    )
    return st.builds(_changed, st.sampled_from(samples), changes)


def _changed(sample: bytes, changes: Sequence[tuple[float, int, bytes]]) -> bytes:
    """Each puts something in the place of so many bytes, at that share of the whole; of many, of the value there."""
    for where, length, piece in changes:
        at = int(where * len(sample))
        if length > _LONGEST_CHANGE:
            at = sample.rfind(b":", 0, at) + 1
            length = len(re.split(rb"[]},]", sample[at:], maxsplit=1)[0])
        sample = sample[:at] + piece + sample[at + length :]
    return sample


def cut(data: bytes, places: Sequence[float]) -> list[bytes]:
    """In pieces, none of them empty."""
    at = sorted({0, len(data), *(int(place * len(data)) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(at)]
