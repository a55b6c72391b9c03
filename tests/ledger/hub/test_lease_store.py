"""The file in which a machine keeps its lease: shared by its proxies, and as nothing where it cannot be used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.lease import Lease
from acp_proxy.core.budget.lease_state import LeaseState
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger.hub.lease_store import MARGIN, LeaseStore, steady
from acp_proxy.ledger.owners import Owner

URL = "https://hub.example.com"
ONE = {"pool": HoldSize(1, 1)}


class Clock:
    now = 1000

    def __call__(self) -> int:
        return self.now


def lease_store(directory: Path, clock: Clock, boot: str = "boot", owner: Owner | None = None) -> LeaseStore:
    return LeaseStore(URL, directory, clock, lambda: boot, owner)


def lend(to: LeaseStore, lease: str, pool: int, clock: Clock) -> Sequence[str]:
    """As the hub does at once; what it has back."""
    returned = to.ask_for(lease)
    assert returned is not None
    to.take(lease, {"pool": pool}, clock.now, HOUR, returned)
    return returned


def gone() -> Owner:
    """A process that has ended."""
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    this = Owner.this()
    return Owner(this.host, ended.pid, "1")


def test_proxies_of_a_machine_spend_of_one_lease(tmp_path: Path) -> None:
    clock = Clock()
    one, other = lease_store(tmp_path, clock), lease_store(tmp_path, clock)
    assert one.is_due(["pool"])
    lend(one, "lease-1", 2, clock)
    assert not other.is_due(["pool"])
    assert (one.draw("t1", ONE), other.draw("t2", ONE), one.draw("t3", ONE)) == ("lease-1", "lease-1", None)
    assert (one.lease_of("t1"), one.lease_of("t2"), other.lease_of("t2")) == ("lease-1", None, "lease-1")
    other.charge("t2", {"pool": 0})
    other.settled("t2")
    assert one.draw("t3", ONE) == "lease-1"


def test_processes_that_draw_at_once_never_draw_more_than_was_lent(tmp_path: Path) -> None:
    lend(LeaseStore(URL, tmp_path), "lease-1", 40, Clock())
    LeaseStore(URL, tmp_path).put_back()
    one = LeaseStore(URL, tmp_path)
    returned = one.ask_for("lease-2")
    assert returned == ("lease-1",)
    one.take("lease-2", {"pool": 40}, steady(), HOUR, returned)
    script = f"""if True:
        import pathlib
        from acp_proxy.core.budget.hold_size import HoldSize
        from acp_proxy.ledger.hub.lease_store import LeaseStore
        one = LeaseStore({URL!r}, pathlib.Path({str(tmp_path)!r}))
        import os
        got = [one.draw(f"{{os.getpid()}}-{{n}}", {{"pool": HoldSize(1, 1)}}) for n in range(30)]
        print(sum(each is not None for each in got))
    """
    drawing = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(int(each.communicate(timeout=60)[0]) for each in drawing) == 40
    assert all(each.returncode == 0 for each in drawing)


def test_it_is_given_back_once_the_hub_has_all_its_rows(tmp_path: Path) -> None:
    clock = Clock()
    one = lease_store(tmp_path, clock)
    lend(one, "lease-1", 2, clock)
    one.draw("t1", ONE)
    assert one.put_back() == ()
    one.charge("t1", {"pool": 1})
    assert one.put_back() == ()
    one.settled("t1")
    assert one.put_back() == ("lease-1",)
    assert one.draw("t2", ONE) is None
    one.given_back(["lease-1"])
    assert one.put_back() == ()


def test_rows_that_a_turn_causes_in_its_session_are_paid_by_the_same_lease(tmp_path: Path) -> None:
    """What a subagent costs beside its turn has an id of its own."""
    clock = Clock()
    one = lease_store(tmp_path, clock)
    lend(one, "lease-1", 2, clock)
    one.draw("t1", ONE, "session")
    assert one.lease_of("of a subagent", "session") == "lease-1"
    assert one.lease_of("of a subagent", "another session") is None
    one.settled("t1")
    assert one.lease_of("of a subagent", "session") is None


def test_a_machine_stops_a_minute_before_the_hub_said(tmp_path: Path) -> None:
    clock = Clock()
    one = lease_store(tmp_path, clock)
    lend(one, "lease-1", 9, clock)
    clock.now += HOUR - MARGIN - 1
    assert one.draw("t1", ONE) == "lease-1"
    clock.now += 1
    assert one.draw("t2", ONE) is None


def test_after_a_restart_of_the_machine_nothing_is_spent_and_the_lease_goes_back(tmp_path: Path) -> None:
    clock = Clock()
    lend(lease_store(tmp_path, clock), "lease-1", 9, clock)
    again = lease_store(tmp_path, clock, "another")
    assert again.draw("t1", ONE) is None
    assert again.is_due(["pool"])
    assert again.ask_for("lease-2") == ("lease-1",)


def test_a_file_that_was_copied_to_another_machine_is_as_no_lease(tmp_path: Path) -> None:
    """There the steady clock has begun at another time, and what names it is another name."""
    clock, here, there = Clock(), tmp_path / "here", tmp_path / "there"
    lend(lease_store(here, clock), "lease-1", 9, clock)
    there.mkdir()
    (file,) = here.glob("*.lease")
    (there / file.name).write_bytes(file.read_bytes())
    assert lease_store(there, clock, "boot of another machine").draw("t1", ONE) is None


def test_another_user_of_the_hub_spends_nothing_of_what_one_was_lent(tmp_path: Path) -> None:
    clock = Clock()
    ann, bob = lease_store(tmp_path, clock), lease_store(tmp_path, clock)
    ann.whose, bob.whose = "ann", "bob"
    lend(ann, "lease-1", 9, clock)
    assert bob.draw("t1", ONE) is None
    assert bob.is_due(["pool"])
    assert ann.draw("t1", ONE) == "lease-1"


def test_what_a_process_drew_and_did_not_live_to_settle_keeps_the_lease_until_its_rows_are_there(
    tmp_path: Path,
) -> None:
    clock, dead = Clock(), gone()
    killed = lease_store(tmp_path, clock, owner=dead)
    lend(killed, "lease-1", 3, clock)
    assert killed.draw("t1", ONE) == "lease-1"
    after = lease_store(tmp_path, clock)
    assert after.is_due(["pool"])
    assert after.left_behind() == {dead: ["t1"]}
    assert after.ask_for("lease-2") == ()
    after.settle_lost(["t1"])
    assert after.put_back() == ("lease-1",)


def test_what_was_asked_for_and_not_answered_goes_back(tmp_path: Path) -> None:
    clock = Clock()
    one = lease_store(tmp_path, clock)
    assert one.ask_for("lease-1") == ()
    one.lose("lease-1")
    assert one.ask_for("lease-2") == ("lease-1",)
    killed = lease_store(tmp_path / "other", clock, owner=gone())
    assert killed.ask_for("lease-3") == ()
    assert lease_store(tmp_path / "other", clock).ask_for("lease-4") == ("lease-3",)


def test_what_cannot_be_read_or_written_is_as_no_lease(tmp_path: Path) -> None:
    clock = Clock()
    one = lease_store(tmp_path, clock)
    lend(one, "lease-1", 9, clock)
    (file,) = tmp_path.glob("*.lease")
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(b'{"current": {"id": "lease-1"')
    assert one.draw("t1", ONE) is None
    in_a_file = lease_store(file / "below", clock)
    assert in_a_file.ask_for("lease-2") is None
    assert in_a_file.draw("t1", ONE) is None


_ids = st.sampled_from(["lease-1", "lease-2", "lease-3", "lease-4"])
_steps = st.lists(
    st.tuples(st.sampled_from(["ask", "answer", "lose", "draw", "settle", "give back"]), _ids, st.booleans()),
    max_size=40,
)


@given(_steps)
def test_no_lease_is_forgotten_nor_spent_after_it_went_back(steps: list[tuple[str, str, bool]]) -> None:
    """Two processes with one file; `back` is what the hub has again, which it believes at any moment."""
    state, lent, back, asked = LeaseState(), set[str](), set[str](), dict[str, tuple[str, ...]]()
    for step, lease_id, flag in steps:
        if step == "ask" and lease_id not in lent | asked.keys():
            state = state.ask(lease_id, f"process {flag}", lambda _: False)
            asked[lease_id] = state.owed
            back |= set(state.owed)
            lent.add(lease_id)
        elif step == "answer" and lease_id in asked:
            state = state.take(Lease(lease_id, "boot", 0, HOUR, {"pool": 9}), asked.pop(lease_id))
        elif step == "lose" and lease_id in asked:
            del asked[lease_id]
            state = state.lose(lease_id)
        elif step == "draw" and state.current is not None:
            drawn = state.current.draw(f"t{len(lent)}{flag}", ONE, "boot", 1, "")
            state = LeaseState(drawn[0] if drawn else state.current, state.ending, state.owed, state.asked)
        elif step == "settle":
            state = state.changed(lambda lease: lease.settled(next(iter(lease.drawn), "")))
        elif step == "give back":
            state = state.put_back()
            back |= set(state.owed)
        assert state.current is None or state.current.id not in back
        assert not back & {lease.id for lease in state.ending}
        known = {lease.id for lease in state.leases} | set(state.owed) | state.asked.keys()
        assert lent <= known | back
