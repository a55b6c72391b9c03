"""The lease of this machine from one hub: a file that its proxies share, one of them at a time.

Whatever cannot be read or written is as no lease: then nothing is spent without the hub.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.lease import Lease
from acp_proxy.core.windows import SECOND
from acp_proxy.system.decoding import json_decoder

MARGIN = 60 * SECOND  # by which a machine stops before the hub said, for a clock that goes too slowly
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


class Wallet:
    """For the hubs at `url`. Called in the relay's thread and in the ledger's."""

    def __init__(
        self, url: str, directory: Path, clock: Callable[[], int] = steady, boot: Callable[[], str] = boot
    ) -> None:
        self._path = directory / f"{quote(url, safe='')}.lease"
        self._clock = clock
        self._boot = boot()
        self._paid: dict[str, str] = {}  # turns of this process, by what lease

    def lease_of(self, turn: str) -> str | None:
        return self._paid.get(turn)

    def is_due(self, accounts: Iterable[str]) -> bool:
        """Whether the hub is to be asked for a lease of these accounts."""
        lease = self._read()
        return lease is None or lease.is_due(accounts, self._boot, self._clock())

    def give_back(self) -> str | None:
        """The id of a lease of which nothing is spent from now on, for the hub to have back; None if it is in use."""
        with self._locked():
            lease = self._read()
            if lease is None or lease.drawn:
                return None
            self._path.unlink(missing_ok=True)
            return lease.id

    def take(self, lease: str, amounts: Mapping[str, int], asked_at: int, usable: int) -> None:
        """What the hub has lent on a question that was asked at a time of the steady clock, for so many ns."""
        if usable > MARGIN:
            with self._locked():
                self._write(Lease(lease, self._boot, asked_at, asked_at + usable - MARGIN, dict(amounts)))

    def draw(self, turn: str, sizes: Mapping[str, HoldSize]) -> str | None:
        """The lease that pays for a turn of these accounts; None if it cannot."""
        with self._locked():
            lease = self._read()
            drawn = lease.draw(turn, sizes, self._boot, self._clock()) if lease else None
            if lease is None or drawn is None or not self._write(drawn[0]):
                return None
            self._paid[turn] = lease.id
            return lease.id

    def charge(self, turn: str, charged: Mapping[str, int]) -> None:
        """It has ended, having used so much of each account."""
        self._change(self._paid.get(turn), lambda found: found.charge(turn, charged))

    def settled(self, turn: str) -> None:
        """Its row is in the ledger, or it used nothing."""
        self._change(self._paid.pop(turn, None), lambda found: found.settled(turn))

    def _change(self, lease: str | None, change: Callable[[Lease], Lease]) -> None:
        with self._locked():
            found = self._read()
            if found is not None and found.id == lease:
                self._write(change(found))

    def _read(self) -> Lease | None:
        with suppress(OSError, msgspec.MsgspecError):
            return json_decoder(Lease).decode(self._path.read_bytes())
        return None

    def _write(self, lease: Lease) -> bool:
        """Whole or not at all, and on the disk: what was drawn must not come back after a loss of power."""
        new = self._path.with_suffix(".new")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(lease))
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
