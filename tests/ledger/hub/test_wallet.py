"""The file in which a machine keeps its lease: shared by its proxies, and as nothing where it cannot be used."""

from __future__ import annotations

from pathlib import Path

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger.hub.wallet import MARGIN, Wallet

URL = "https://hub.example.com"
ONE = {"pool": HoldSize(1, 1)}


class Clock:
    now = 1000

    def __call__(self) -> int:
        return self.now


def wallet(directory: Path, clock: Clock, boot: str = "boot") -> Wallet:
    return Wallet(URL, directory, clock, lambda: boot)


def test_proxies_of_a_machine_spend_of_one_lease(tmp_path: Path) -> None:
    clock = Clock()
    one, other = wallet(tmp_path, clock), wallet(tmp_path, clock)
    assert one.is_due(["pool"])
    one.take("lease-1", {"pool": 2}, clock.now, HOUR)
    assert not other.is_due(["pool"])
    assert (one.draw("t1", ONE), other.draw("t2", ONE), one.draw("t3", ONE)) == ("lease-1", "lease-1", None)
    assert (one.lease_of("t1"), one.lease_of("t2"), other.lease_of("t2")) == ("lease-1", None, "lease-1")
    other.charge("t2", {"pool": 0})
    other.settled("t2")
    assert one.draw("t3", ONE) == "lease-1"


def test_it_is_given_back_once_the_hub_has_all_its_rows(tmp_path: Path) -> None:
    clock = Clock()
    one = wallet(tmp_path, clock)
    one.take("lease-1", {"pool": 2}, clock.now, HOUR)
    one.draw("t1", ONE)
    assert one.give_back() is None
    one.charge("t1", {"pool": 1})
    assert one.give_back() is None
    one.settled("t1")
    assert one.give_back() == "lease-1"
    assert one.draw("t2", ONE) is None


def test_a_machine_stops_a_minute_before_the_hub_said(tmp_path: Path) -> None:
    clock = Clock()
    one = wallet(tmp_path, clock)
    one.take("lease-1", {"pool": 9}, clock.now, HOUR)
    clock.now += HOUR - MARGIN - 1
    assert one.draw("t1", ONE) == "lease-1"
    clock.now += 1
    assert one.draw("t2", ONE) is None


def test_after_a_restart_of_the_machine_nothing_is_spent(tmp_path: Path) -> None:
    clock = Clock()
    wallet(tmp_path, clock).take("lease-1", {"pool": 9}, clock.now, HOUR)
    assert wallet(tmp_path, clock, "another").draw("t1", ONE) is None


def test_what_cannot_be_read_or_written_is_as_no_lease(tmp_path: Path) -> None:
    clock = Clock()
    one = wallet(tmp_path, clock)
    one.take("lease-1", {"pool": 9}, clock.now, HOUR)
    (file,) = tmp_path.glob("*.lease")
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(b'{"id": "lease-1"')
    assert one.draw("t1", ONE) is None
    in_a_file = wallet(file / "below", clock)
    in_a_file.take("lease-2", {"pool": 9}, clock.now, HOUR)
    assert in_a_file.draw("t1", ONE) is None
