"""Turns or sessions in a report's order, however many: beyond some megabytes they wait on disk, sorted, to be merged.

That file has no name, and is gone with the process.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import islice
from typing import IO, TypeVar

import msgspec

from acp_proxy.core.entry import Entry, Origin
from acp_proxy.core.money import Money
from acp_proxy.ledger import LedgerError, Row, SessionInfo, Sums
from acp_proxy.ledger.session_keys import session_key
from acp_proxy.system.decoding import msgpack_decoder

T = TypeVar("T")

_IN_MEMORY = 8_000_000  # bytes of turns
_BLOCK = 64  # turns that are written, and later read, at once
_SIZE = 4  # bytes before each block
_MIDDLE = 1 << 127  # of the numbers that 16 bytes hold: some 64-bit ones added up fit as well

_Record = tuple[bytes, bytes]  # a place among others; a turn with the number of its origin, or a session with its sums

_encode = msgspec.msgpack.Encoder().encode
_decode_block = msgpack_decoder(list[_Record]).decode
_decode_session = msgpack_decoder(tuple[SessionInfo, Sums]).decode


class _Strange(Entry, frozen=True):
    """A row with a kind or source that only another version or program knows: it is shown, too."""

    kind: str  # type: ignore[assignment]  # of `Entry` only these words, like the next two
    usage_source: str  # type: ignore[assignment]
    cost_source: str  # type: ignore[assignment]


_decode_entry = msgpack_decoder(tuple[int, Entry]).decode
_decode_strange = msgpack_decoder(tuple[int, _Strange]).decode


class Ranked(Collection[T]):
    """By cost, the highest first, in the first of the currencies that there is; then by tokens; then by key.

    All records are read at once, and `count` is how many they were; each is what `made` makes of its bytes. At most
    `most` are kept. Raises LedgerError where there is no room.
    """

    def __init__(
        self,
        records: Iterable[_Record],
        made: Callable[[bytes], T],
        in_memory: int = _IN_MEMORY,
        most: int | None = None,
    ) -> None:
        self._made = made
        self._most = most
        self.count = 0
        self._file: IO[bytes] | None = None
        self._runs: list[tuple[int, int, int]] = []  # the file's descriptor, and where they begin and end in it
        self._rest = self._read(records, in_memory)

    def __len__(self) -> int:
        return self.count if self._most is None else min(self.count, self._most)

    def __contains__(self, one: object) -> bool:
        return any(each == one for each in self)

    def __iter__(self) -> Iterator[T]:
        for _, record in islice(merge(self._rest, *(_run(*run) for run in self._runs)), self._most):
            yield self._made(record)

    def _read(self, records: Iterable[_Record], in_memory: int) -> list[_Record]:
        """Those that are left when all before them are on disk."""
        found, size = list[_Record](), 0
        for record in records:
            found.append(record)
            size += len(record[1])
            self.count += 1
            if self._most is not None and len(found) >= 2 * self._most + _BLOCK:
                found = sorted(found)[: self._most]
                size = sum(len(each[1]) for each in found)
            if size > in_memory:
                self._write(sorted(found))
                found, size = [], 0
        return sorted(found)

    def _write(self, records: Sequence[_Record]) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="acp-proxy-report-")  # noqa: SIM115  (closed below)
                weakref.finalize(self, _close, self._file)
            start = self._file.tell()
            for first in range(0, len(records), _BLOCK):
                block = _encode(records[first : first + _BLOCK])
                self._file.write(len(block).to_bytes(_SIZE, "big") + block)
            self._file.flush()
        except OSError as error:
            raise LedgerError(f"report: no room to sort turns in {tempfile.gettempdir()}: {error.strerror}") from error
        self._runs.append((self._file.fileno(), start, self._file.tell()))


def ranked_turns(
    rows: Iterable[Row],
    currencies: Sequence[str],
    made: Callable[[Row], T],
    in_memory: int = _IN_MEMORY,
    most: int | None = None,
) -> Ranked[T]:
    """In a report's order, each as `made` makes it. All are read when this is called. Raises LedgerError."""
    origins: dict[Origin, int] = {}

    def record(row: Row) -> _Record:
        entry, number = row.entry, origins.setdefault(row.origin, len(origins))
        return _place(currencies, entry.costs, entry.usage.total, entry.id), _encoded((number, entry))

    def unpacked(data: bytes) -> T:
        try:
            number, entry = _decode_entry(data)
        except msgspec.ValidationError:
            number, entry = _decode_strange(data)
        return made(Row(numbered[number], entry))

    ranked = Ranked(map(record, rows), unpacked, in_memory, most)
    numbered = list(origins)
    return ranked


def ranked_sessions(
    found: Iterable[tuple[SessionInfo, Sums]],
    currencies: Sequence[str],
    made: Callable[[SessionInfo, Sums], T],
    most: int | None = None,
) -> Ranked[T]:
    """The same for sessions with their sums."""

    def record(one: tuple[SessionInfo, Sums]) -> _Record:
        session, sums = one
        key = session_key(session.origin, session.session)
        return _place(currencies, sums.costs, sums.usage.total, key), _encoded(one)

    return Ranked(map(record, found), lambda data: made(*_decode_session(data)), most=most)


def _encoded(turn_or_session: object) -> bytes:
    try:
        return _encode(turn_or_session)
    except OverflowError as error:
        raise LedgerError(
            "report: figures of a turn or session are beyond 64 bits: another program wrote them"
        ) from error


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # what had no room
        file.close()


def _run(file: int, start: int, end: int) -> Iterator[_Record]:
    while start < end:
        size = int.from_bytes(os.pread(file, _SIZE, start), "big")
        yield from _decode_block(os.pread(file, size, start + _SIZE))
        start += _SIZE + size


def _place(currencies: Sequence[str], costs: Iterable[Money], tokens: int, key: str) -> bytes:
    """Bytes that sort as a report does."""
    amounts = {cost.currency: cost.nano for cost in costs}
    places = [b"\0" + _falling(amounts[each]) if each in amounts else b"\1" for each in currencies]
    return b"".join((*places, _falling(tokens), key.encode("utf-8", "surrogatepass")))


def _falling(number: int) -> bytes:
    return (_MIDDLE - number).to_bytes(16, "big")
