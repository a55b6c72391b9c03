"""Has a hub get back what it has acknowledged and its database then lost: by a failover, or as a backup was restored.

What this process had acknowledged is kept in a file (`journal/kept.py`). One call follows another, so a ledger that has
the last rows has all that came before; where it lacks them, all of the file that it lacks is sent again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain, groupby
from pathlib import Path

from msgspec.structs import replace

from acp_proxy.ledger import LedgerError, LedgerForbiddenError, LedgerUnavailableError, Row, RowRefusedError, Warn
from acp_proxy.ledger.hub import questions, wire
from acp_proxy.ledger.hub.connection import HubConnection
from acp_proxy.ledger.hub.place import Again, Missing, Place
from acp_proxy.ledger.journal.kept import Kept, Write, Writer, left, take
from acp_proxy.ledger.journal.recovery import append_all

_MOST = 100  # incarnations that are remembered
_BETWEEN = 60.0  # seconds until the same files of processes that are gone are looked at again


class Keeping:
    """Of one ledger, and of its thread. A hub that does not say where it keeps rows is a version that keeps nothing."""

    def __init__(self, url: str, hub: HubConnection, journals: Sequence[Path], warn: Warn) -> None:
        self._url = url
        self._hub = hub
        self._journals = journals
        self._warn = warn
        self._kept: Kept | None = None
        self._place: Place | None = None
        self._found: set[str] = set()  # incarnations that have what is kept
        self._sure = False  # by the last answer
        self._told = False
        self._looked_at = frozenset[tuple[Path, int]]()  # files of processes that are gone
        self._looks_again = 0.0  # by `time.monotonic`

    @property
    def fails_over(self) -> bool:
        return self._kept is not None and self._place is not None and self._place.fails_over

    def acknowledged(self, place: Place | None, *writes: Write) -> None:
        """Keep these of one call. Raises LedgerError where it cannot be told whether all before them is there.

        The writes are then to be made again: behind what is missing they would hide it.
        """
        if place is None or (kept := self._taken(place)) is None:
            return
        self.look(place)
        number = kept.number()
        try:
            kept.add(number, [replace(write, number=number) for write in writes])
        except OSError as error:
            self._tell(str(error))

    def released(self, organisation: str, turn: str) -> None:
        """A hold that came back without its turn would be booked."""
        if self._place is not None:
            self.acknowledged(self._place, Write(0, released=(organisation, turn)))

    def look(self, place: Place | None) -> bool:
        """Whether a ledger that answered from there lacked something, which was sent again. Raises LedgerError."""
        if place is None:
            return False
        self._place = place
        if place.incarnation in self._found:
            return False
        lacked = self._lacked(self._kept) if self._kept and _is_of(self._kept, place) else False
        if len(self._found) >= _MOST:
            self._found.clear()
        self._found.add(place.incarnation)
        return lacked

    def is_sure(self) -> bool:
        """Whether the hub says that all is where a failover keeps it, and it lacks nothing. Raises LedgerError."""
        if self._kept is None or self._place is None or not _is_of(self._kept, self._place):
            return True
        return not self._lacked(self._kept) and self._sure

    def restore_left(self) -> None:
        """Send again what the ledger lacks of processes that are gone. Raises LedgerUnavailableError."""
        with left(self._journals, self._url) as files:
            there = frozenset((kept.path, kept.last) for kept in files)
            if not files or (there == self._looked_at and time.monotonic() < self._looks_again):
                return
            try:
                self._restore_own(files)
            except LedgerUnavailableError:
                raise
            except LedgerError:  # nobody has signed in, or it is a hub of an earlier version
                return
            self._looked_at, self._looks_again = there, time.monotonic() + _BETWEEN

    def _restore_own(self, files: Sequence[Kept]) -> None:
        """With one question where all files are of one user, as they mostly are: whose they are the answer says."""
        tails = [kept.tail() for kept in files]
        asked = _ids(chain.from_iterable(tails)) if len(set(map(_whose, files))) == 1 else []
        found = self._ask(asked[: wire.MOST_ROWS])
        place = self._place = found.place
        own = [each for each in zip(files, tails, strict=True) if place is not None and _is_of(each[0], place)]
        if not own:
            return
        wanted = _ids(chain.from_iterable(tail for _, tail in own))
        missing = set(found.ids) if wanted == asked[: wire.MOST_ROWS] else self._missing(wanted)
        for kept, tail in own:
            self._restore_one(kept, tail, missing)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _lacked(self, kept: Kept) -> bool:
        """As `_restore_one`. What is wrong with that alone must not keep rows from coming after it."""
        try:
            tail = kept.tail()
            return self._restore_one(kept, tail, self._missing(_ids(tail)))
        except (LedgerUnavailableError, LedgerForbiddenError):
            raise
        except LedgerError as error:
            self._tell(str(error))
            return False

    def _taken(self, place: Place) -> Kept | None:
        if self._kept is not None and _is_of(self._kept, place):
            return self._kept
        self.close()  # somebody else has signed in
        self._place = place
        self._found.clear()
        for directory in self._journals:
            with suppress(OSError):
                self._kept = take(directory, self._writer(place))
                return self._kept
        if self._journals:
            self._tell("no local, writable directory")
        return None

    def _writer(self, place: Place) -> Writer:
        return Writer(self._url, place.ledger, place.organisation, os.urandom(8).hex(), place.user)

    def _ask(self, ids: Sequence[str]) -> Missing:
        organisation = self._place.organisation if self._place else ""
        found = self._hub.call(questions.MISSING, questions.Ids(organisation, list(ids)))
        self._sure = found.sure
        return found

    def _missing(self, ids: Sequence[str]) -> set[str]:
        found = set[str]()
        for start in range(0, len(ids), wire.MOST_ROWS):
            found.update(self._ask(ids[start : start + wire.MOST_ROWS]).ids)
        return found

    def _restore_one(self, kept: Kept, tail: Sequence[Write], missing: set[str]) -> bool:
        """Whether something was lost, which was sent again."""
        if any(write.row and write.row.entry.id in missing for write in tail):
            writes, lost_until = self._lost(kept)
            return self._send(writes, lost_until)
        # That the last rows are there says nothing of what came after them.
        after = [write for write in tail if write.row is None]
        corrected = [write for write in after if write.corrected]
        if corrected and not self._again(corrected[-1]):
            after = [write for write in after if write.corrected is None]
        return self._send(after, None)

    def _lost(self, kept: Kept) -> tuple[list[Write], int | None]:
        """All that is not there, in its order, and until when what is not there is kept no more."""
        writes = kept.since(0)
        missing = self._missing(_ids(writes))
        there = 0  # the last of the writes that is there, before the first that is not
        for write in writes:
            if write.row is None:
                continue
            if write.row.entry.id in missing:
                break
            there = write.number
        lost = [write for write in writes if (write.row.entry.id in missing if write.row else write.number > there)]
        return lost, kept.given_up if not there and kept.given_up else None

    def _send(self, writes: Sequence[Write], lost_until: int | None) -> bool:
        """The last rows come last, so that what breaks off is done again."""
        again, new = _Again(self._hub, Again(os.urandom(8).hex(), lost_until)), 0
        for is_row, some in groupby(writes, lambda write: write.row is not None):
            if is_row:
                rows = [write.row for write in some if write.row]
                new += append_all(again, rows, self._warn, in_order=True)
            else:
                new += sum(map(self._again, some))
        if new:
            missing = {"not_kept_until": lost_until} if lost_until else {}
            self._warn("ledger.went_back", ledger=self._url, restored_rows=new, **missing)
        return new > 0

    def _again(self, write: Write) -> bool:
        """Whether that changed something of a row."""
        with suppress(LedgerForbiddenError, RowRefusedError):  # another's by now
            if write.released:
                organisation, turn = write.released
                self._hub.call(wire.RELEASE, wire.Turn(turn, organisation))
            if write.corrected:
                before, after = write.corrected
                return self._hub.call(questions.CORRECT, questions.Correction(before, after, write.number)).done
        return False

    def _tell(self, error: str) -> None:
        if not self._told:
            self._told = True
            self._warn("ledger.not_kept", error=error, effect="a failover may lose rows")


class _Again:
    """Appends as `append_all` wants it."""

    def __init__(self, hub: HubConnection, again: Again) -> None:
        self._hub = hub
        self._again = again

    def append(self, rows: Sequence[Row], *, in_order: bool = False) -> int:
        asked = wire.Rows(list(rows), in_order, whole=True, again=self._again)
        appended = self._hub.call(wire.APPEND, asked)
        if appended.refused:
            raise RowRefusedError(appended.refused[0].detail)
        return appended.new


def _ids(writes: Iterable[Write]) -> list[str]:
    return [write.row.entry.id for write in writes if write.row]


def _whose(kept: Kept) -> tuple[str, str, str]:
    return kept.writer.identity, kept.writer.organisation, kept.writer.user


def _is_of(kept: Kept, place: Place) -> bool:
    """Whether it has what this user had acknowledged of that ledger."""
    return _whose(kept) == (place.ledger, place.organisation, place.user)
