"""What this machine was lent by one hub: a file that its proxies share, one of them at a time.

Whatever cannot be read or written is as no lease: then nothing is spent without the hub.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.lease import Lease
from acp_proxy.core.budget.lease_state import LeaseState
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger.owners import Owner
from acp_proxy.system.decoding import json_decoder

MARGIN = 60 * SECOND  # by which a machine stops before the hub said, for a clock that goes too slowly
SUFFIX = ".lease"
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def steady() -> int:
    """ns by a clock that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime_ns(_STEADY)


def boot() -> str:
    """A name for this start of the machine: with another one the steady clock began anew."""
    with suppress(OSError):
        return _BOOT.read_text().strip()
    return str(round(time.time() - time.clock_gettime(_STEADY)) // 60)


class _Paid(Struct, frozen=True):
    """A turn of this process that runs on a lease."""

    lease: str
    session: str


class LeaseStore:
    """For the hubs at `url`, and whom they know by this machine's token. `owner` is this process.

    Called in the relay's thread and in the ledger's.
    """

    def __init__(
        self,
        url: str,
        directory: Path,
        clock: Callable[[], int] = steady,
        boot: Callable[[], str] = boot,
        owner: Owner | None = None,
    ) -> None:
        self._path = directory / f"{quote(url, safe='')}{SUFFIX}"
        self._clock = clock
        self._boot = boot()
        self._by = msgspec.json.encode(owner or Owner.this()).decode()
        self._paid: dict[str, _Paid] = {}  # turns of this process
        self.whose = ""  # the user that the hub knows; another one spends nothing of what this one was lent

    def lease_of(self, turn: str, session: str = "") -> str | None:
        """What pays for a row of this id: that of its turn, or of the one that runs in its session and caused it."""
        found = self._paid.get(turn)
        if found is None and session:
            found = next((each for each in self._paid.values() if each.session == session), None)
        return None if found is None else found.lease

    def is_due(self, accounts: Iterable[str]) -> bool:
        """Whether the hub is to be asked for a lease of these accounts."""
        lease = self._read().current
        if lease is None or lease.whose != self.whose:
            return True
        return lease.is_due(accounts, self._boot, self._clock(), self._left_behind([lease]))

    def lease(self) -> Lease | None:
        """The one that may be spent of now."""
        found = self._read().current
        return found if found is not None and found.holds(self._boot, self._clock()) else None

    def left_behind(self) -> dict[Owner, list[str]]:
        """Turns that processes have drawn for which are gone, by these."""
        found: dict[Owner, list[str]] = {}
        leases = list(self._read().leases)
        gone = self._left_behind(leases)
        for lease in leases:
            for turn in filter(gone.__contains__, lease.drawn):
                if (owner := _owner(lease.by.get(turn, ""))) is not None:
                    found.setdefault(owner, []).append(turn)
        return found

    def settle_lost(self, turns: Collection[str]) -> None:
        """The hub has all that there will ever be of these."""

        def change(lease: Lease) -> Lease:
            for turn in turns:
                lease = lease.settled(turn)
            return lease

        self._change(lambda found: found.changed(change))

    def ask_for(self, lease: str) -> Sequence[str] | None:
        """The hub is about to be asked for it; the ids that it has back with that question. None: it cannot be kept."""
        with self._locked():
            asking = self._read().ask(lease, self._by, _is_gone)
            return asking.owed if self._write(asking) else None

    def lose(self, lease: str) -> None:
        """The hub has not answered: whether it has lent it is not known."""
        self._change(lambda found: found.lose(lease))

    def take(
        self, lease: str, amounts: Mapping[str, int], asked_at: int, usable: int, returned: Sequence[str] = ()
    ) -> None:
        """What the hub has lent on a question that was asked at a time of the steady clock, for so many ns."""
        until = asked_at + max(0, usable - MARGIN)
        lent = Lease(lease, self._boot, asked_at, until, dict(amounts), whose=self.whose)
        self._change(lambda found: found.take(lent, returned))

    def put_back(self) -> Sequence[str]:
        """Nothing more is spent; the ids that the hub may have back now. Others wait for their rows."""
        with self._locked():
            back = self._read().put_back()
            return back.owed if self._write(back) else ()

    def given_back(self, returned: Collection[str]) -> None:
        """The hub has them."""
        self._change(lambda found: msgspec.structs.replace(found, owed=tuple(set(found.owed).difference(returned))))

    def draw(self, turn: str, sizes: Mapping[str, HoldSize], session: str = "") -> str | None:
        """The lease that pays for a turn of these accounts; None if it cannot."""
        with self._locked():
            state = self._read()
            lease = state.current
            if lease is None or lease.whose != self.whose:
                return None
            drawn = lease.draw(turn, sizes, self._boot, self._clock(), self._by)
            if drawn is None or not self._write(msgspec.structs.replace(state, current=drawn[0])):
                return None
            self._paid[turn] = _Paid(lease.id, session)
            return lease.id

    def charge(self, turn: str, charged: Mapping[str, int]) -> None:
        """It has ended, having used so much of each account."""
        if turn in self._paid:
            self._change(lambda found: found.changed(lambda lease: lease.charge(turn, charged)))

    def settled(self, turn: str) -> None:
        """Its row is in the ledger, or it used nothing."""
        if self._paid.pop(turn, None) is not None:
            self.settle_lost([turn])

    def _left_behind(self, leases: Iterable[Lease]) -> set[str]:
        drawn = {turn: lease.by.get(turn, "") for lease in leases for turn in lease.drawn}
        return {turn for turn, process in drawn.items() if process != self._by and _is_gone(process)}

    def _change(self, change: Callable[[LeaseState], LeaseState]) -> None:
        with self._locked():
            found = self._read()
            if (changed := change(found)) != found:
                self._write(changed)

    def _read(self) -> LeaseState:
        with suppress(OSError, msgspec.MsgspecError):
            return json_decoder(LeaseState).decode(self._path.read_bytes())
        return LeaseState()

    def _write(self, state: LeaseState) -> bool:
        """Whole or not at all, and on the disk: what was drawn must not come back after a loss of power."""
        new = self._path.with_suffix(".new")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(state))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError:
            return False
        return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Where there can be no lock, no lease is found either: its file would be in the same directory."""
        file = None
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path.with_suffix(".lease-lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            if file is not None:
                os.close(file)


def _owner(process: str) -> Owner | None:
    with suppress(msgspec.MsgspecError):
        return json_decoder(Owner).decode(process.encode())
    return None


def _is_gone(process: str) -> bool:
    """True only where it is certain; of what names no process it is not."""
    owner = _owner(process)
    return owner is not None and owner.is_gone
