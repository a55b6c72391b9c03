"""The bytes of a journal: a head that names the ledger, then records that are there whole or not at all. No I/O.

A record's mark is one byte, written last; the record after the last one is marked free. One that is done gives its
place to another that takes the same room, and is marked done until that one is there. That is enough for a process that
is killed between any two stores; the checksum is for a machine that loses power.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from mmap import mmap
from zlib import crc32

import msgspec
from msgspec import Struct

from acp_proxy.ledger import Row
from acp_proxy.system.decoding import msgpack_decoder

MAGIC = b"acpjrnl1"  # the last character is the format's version
_HEAD = struct.Struct("<8sI")  # magic, length of the ledger's URL, which follows
_RECORD = struct.Struct("<B3xII")  # mark, length of the row, CRC-32 of the row, which follows
_FREE, _COMMITTED, _DONE, _OPEN = 0, 0xC0, 0xD0, 0xB0
_ALIGNMENT = 16

encode = msgspec.msgpack.Encoder().encode  # Row -> bytes, in 4 µs


class Contents(Struct, frozen=True):
    """The contents of a journal."""

    ledger: str  # the URL that it was written for
    rows: tuple[Row, ...]  # committed and not done
    open: tuple[Row, ...]  # of turns that had not ended: what was known last
    torn: int  # damaged stretches that were skipped
    unreadable: int  # whole records that are no rows: of another version


def head(ledger: str) -> bytes:
    """The head of a journal, up to the first record."""
    url = os.fsencode(ledger)  # a path may hold bytes that are no UTF-8
    return (_HEAD.pack(MAGIC, len(url)) + url).ljust(_aligned(_HEAD.size + len(url)), b"\0")


def room(data: bytes) -> int:
    """How many bytes the record of `data` takes; the mark after it needs one more."""
    return _aligned(_RECORD.size + len(data))


def commit(journal: mmap, offset: int, data: bytes, *, is_open: bool = False) -> None:
    """Put a record where the journal is marked free; `is_open` for the row of a turn that has not ended."""
    journal[offset + room(data)] = _FREE
    _put(journal, offset, data, _FREE, is_open=is_open)


def replace_done(journal: mmap, offset: int, data: bytes, *, is_open: bool = False) -> None:
    """The same in the place of a record that is ticked off, and took as much room."""
    _put(journal, offset, data, _DONE, is_open=is_open)


def _put(journal: mmap, offset: int, data: bytes, meanwhile: int, *, is_open: bool) -> None:
    _RECORD.pack_into(journal, offset, meanwhile, len(data), crc32(data))
    journal[offset + _RECORD.size : offset + _RECORD.size + len(data)] = data
    journal[offset] = _OPEN if is_open else _COMMITTED


def tick_off(journal: mmap, offset: int) -> int:
    """The record is not needed any more; returns the space that it takes."""
    journal[offset] = _DONE
    return _aligned(_RECORD.size + _RECORD.unpack_from(journal, offset)[1])


def end_at(journal: mmap, offset: int) -> None:
    """There is no record from here on."""
    journal[offset] = _FREE


def read_journal(data: bytes) -> Contents | None:
    """The contents of a journal's file; None when it is none, or one of a newer format. Never raises."""
    if len(data) < _HEAD.size or not data.startswith(MAGIC):
        return None
    first = _HEAD.size + _HEAD.unpack_from(data)[1]
    decode = msgpack_decoder(Row).decode
    rows: list[Row] = []
    unfinished: dict[str, Row] = {}
    torn = unreadable = 0
    offset = _aligned(first)
    while offset + _RECORD.size <= len(data) and data[offset] != _FREE:
        record = _record_at(data, offset)
        if record is None:
            torn += data[offset] != _DONE  # else it was not needed, or its place was just being given to another
            offset = _next_whole(data, offset + _ALIGNMENT)
            continue
        if data[offset] in (_COMMITTED, _OPEN):
            try:
                row = decode(record)
                if data[offset] == _COMMITTED:
                    rows.append(row)
                else:  # two of a turn only if one was just to be ticked off
                    known = unfinished.get(row.entry.id, row)
                    unfinished[row.entry.id] = max(row, known, key=lambda each: each.entry.ended_at)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                unreadable += 1
        offset += room(record)
    ended = {row.entry.id for row in rows}
    still_open = tuple(row for turn, row in unfinished.items() if turn not in ended)
    return Contents(os.fsdecode(data[_HEAD.size : first]), tuple(rows), still_open, torn, unreadable)


def last_rows(data: bytes) -> tuple[str, tuple[Row, ...]]:
    """The ledger of a journal, and the rows that its process wrote last, also those that are done. Never raises.

    A record that is done keeps its bytes until another takes its place, and the first one after all are done. So the
    last row of every process is there, and those before it as far as nothing was written over them.
    """
    if len(data) < _HEAD.size or not data.startswith(MAGIC):
        return "", ()
    offset = _HEAD.size + _HEAD.unpack_from(data)[1]
    ledger, offset = os.fsdecode(data[_HEAD.size : offset]), _aligned(offset)
    decode = msgpack_decoder(Row).decode
    rows = list[Row]()
    while (record := _bytes_at(data, offset)) is not None:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            rows.append(decode(record))
        offset += room(record)
    return ledger, tuple(rows)


def _record_at(data: bytes, offset: int) -> bytes | None:
    return _bytes_at(data, offset) if data[offset] in (_COMMITTED, _DONE, _OPEN) else None


def _bytes_at(data: bytes, offset: int) -> bytes | None:
    """Of a record, whatever its mark says; None where there is no whole one."""
    if offset + _RECORD.size > len(data):
        return None
    _, length, crc = _RECORD.unpack_from(data, offset)
    record = data[offset + _RECORD.size : offset + _RECORD.size + length]
    return record if 0 < length == len(record) and crc32(record) == crc else None


def _next_whole(data: bytes, offset: int) -> int:
    """The position of the next intact record that still counts, or the end."""
    for candidate in range(offset, len(data) - _RECORD.size + 1, _ALIGNMENT):
        if data[candidate] in (_COMMITTED, _OPEN) and _record_at(data, candidate) is not None:
            return candidate
    return len(data)


def _aligned(size: int) -> int:
    return size + -size % _ALIGNMENT
