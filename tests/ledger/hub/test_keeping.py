"""A hub whose database is set back, by a failover or from a backup, gets back what machines had acknowledged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.doctor.servers import server_findings
from acp_proxy.hub import api
from acp_proxy.hub.api import restoring
from acp_proxy.hub.api.desk import Desk
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.store import Store
from acp_proxy.ledger import OpenTurn, Query, Row, open_ledger
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.hub import wire
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.hub.place import Place
from acp_proxy.ledger.journal import kept
from acp_proxy.ledger.owners import Owner
from acp_proxy.system.decoding import json_decoder
from harness import hub
from harness.ports import free_port
from harness.postgres import Server, name_of
from harness.rows import ALICE, MINUTE, NOON, amended, line, row
from tests.ledger.holds import CAP, held
from tests.ledger.postgres.backups import Backups
from tests.ledger.warned import Warnings

PEOPLE = {
    "alice": Identity("alice", "default", "core", "developer"),
    "bob": Identity("bob", "default", None, "developer"),
    "root": Identity("root", "default", None, "administrator"),
}


class Backup(Protocol):
    def make(self) -> None: ...

    def restore(self) -> None: ...


class HubHere:
    """A hub that is in front of a ledger, and starts anew at the same address."""

    def __init__(self, ledger: str) -> None:
        self.ledger = ledger
        self._port = free_port()
        self._running = ExitStack()
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        with closing(open_ledger(self.ledger, journals=())) as opened:
            Store(opened.tables, "default")
        running = hub.running(self.ledger, PEOPLE, clock=lambda: NOON, port=self._port)
        self._running.enter_context(running)

    def stop(self) -> None:
        self._running.close()

    def rows(self) -> list[tuple[str, str]]:
        """Each with whose it is, as the database has them."""
        with closing(open_ledger(self.ledger, journals=())) as opened:
            return [(each.entry.id, each.origin.user) for each in opened.rows(Query())]

    def ids(self) -> list[str]:
        return [turn for turn, _ in self.rows()]


class FileBackup:
    """Of an SQLite file: the hub is stopped for each, as for any file that is copied."""

    def __init__(self, here: HubHere) -> None:
        self._here = here
        self._file = Path(here.ledger.removeprefix("sqlite:///"))

    def make(self) -> None:
        self._here.stop()
        shutil.copy(self._file, self._file.with_suffix(".backup"))
        self._here.start()

    def restore(self) -> None:
        self._here.stop()
        for each in self._file.parent.glob(f"{self._file.name}-*"):
            each.unlink()
        shutil.copy(self._file.with_suffix(".backup"), self._file)
        self._here.start()


@pytest.fixture(params=["sqlite", "postgresql"])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HubHere]:
    ledger = f"sqlite:///{tmp_path}/hub.db"
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("postgres")
        ledger = server.create(f"hub_keeping_{abs(hash(request.node.name))}")
    found = HubHere(ledger)
    yield found
    found.stop()


@pytest.fixture
def backup(here: HubHere, request: pytest.FixtureRequest) -> Backup:
    if here.ledger.startswith("sqlite"):
        return FileBackup(here)
    return Backups(request.getfixturevalue("postgres"), here.ledger)


Proxy = Callable[..., HubLedger]


@pytest.fixture
def proxy(here: HubHere, tmp_path: Path, warnings: Warnings) -> Iterator[Proxy]:
    """The ledger of a proxy of somebody, whose machine is a directory."""
    opened = list[HubLedger]()

    def proxy(who: str = "alice", machine: str = "laptop") -> HubLedger:
        found = HubLedger(
            here.url,
            lambda: NOON,
            patience=10,
            warn=warnings,
            journals=[tmp_path / machine],
            authorization=lambda _: f"Bearer {who}",
        )
        opened.append(found)
        return found

    yield proxy
    for each in opened:
        each.close()


def hold(ledger: HubLedger, turn: str) -> int:
    """How much of a budget of a dollar has been spent when it is held for this turn."""
    opened = OpenTurn(turn, ALICE, "s1", NOON, Owner.this(), "opus")
    (standing,) = ledger.hold(opened, [(CAP, HoldSize(300_000_000, 1))], NOON, NOON + EXPIRY).standings
    return standing.spent


def kept_on(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.kept"))


def test_the_next_write_finds_that_rows_are_missing_and_sends_them_again(
    here: HubHere, backup: Backup, proxy: Proxy, warnings: Warnings
) -> None:
    ledger = proxy()
    ledger.append([row(id="1")])
    backup.make()
    ledger.append([row(id="2"), row(id="3")])
    ledger.append([row(id="4")])
    backup.restore()
    assert here.ids() == ["1"]
    ledger.append([row(id="5")])
    assert here.ids() == ["1", "2", "3", "4", "5"]
    restored = ledger.restored("default")
    assert (restored.rows, restored.processes, restored.machines, restored.incomplete) == (3, 1, 1, 0)
    assert warnings.events == ["ledger.went_back"]
    ((sums),) = proxy("root").summed(Query(), ())
    assert sums.rows == 5


def test_the_first_prompt_is_decided_on_with_all_that_was_spent(backup: Backup, proxy: Proxy) -> None:
    ledger = proxy()
    ledger.append([row(id="1")])
    backup.make()
    ledger.append([row(id="2")])
    backup.restore()
    assert hold(ledger, "3") == 20_000_000


def test_who_has_nothing_to_do_finds_it_when_asked_whether_all_is_safe(
    here: HubHere, backup: Backup, proxy: Proxy
) -> None:
    ledger = proxy()
    backup.make()
    ledger.append([row(id="1")])
    assert ledger.fails_over == here.ledger.startswith("postgresql"), "a file is put back only where its hub starts"
    backup.restore()
    assert not ledger.is_sure()
    assert here.ids() == ["1"]
    assert ledger.is_sure(), "where no standby streams a failover has nowhere to go"


def test_rows_of_processes_that_are_gone_are_sent_by_the_next_one_on_their_machine(
    here: HubHere, backup: Backup, proxy: Proxy
) -> None:
    both = [proxy(), proxy()]
    backup.make()
    for number, ledger in enumerate(both):
        ledger.append([row(id=str(number), session=str(number))])
    for ledger in both:
        ledger.close()
    backup.restore()
    proxy(machine="another").settle_dead(NOON)
    assert here.ids() == []
    proxy().settle_dead(NOON)
    assert here.ids() == ["0", "1"]
    proxy().settle_dead(NOON)
    assert proxy().restored("default").processes == 2


def test_two_machines_send_what_each_of_them_wrote_once(here: HubHere, backup: Backup, proxy: Proxy) -> None:
    alice, bob = proxy("alice", "hers"), proxy("bob", "his")
    backup.make()
    for number in range(3):
        alice.append([row(id=f"a{number}", session="a")])
        bob.append([row(id=f"b{number}", session="b")])
    backup.restore()
    alice.append([row(id="a3", session="a")])
    bob.append([row(id="b3", session="b")])
    wanted = [(f"{who[0]}{number}", who) for who in ("alice", "bob") for number in range(4)]
    assert sorted(here.rows()) == wanted
    assert alice.restored("default").rows == 3, "nobody is told of what others sent"
    assert proxy("root").restored("default").rows == 6


def test_nobody_sends_the_rows_of_another_user_of_their_machine(here: HubHere, backup: Backup, proxy: Proxy) -> None:
    ledger = proxy("alice")
    backup.make()
    ledger.append([row(id="1")])
    ledger.close()
    backup.restore()
    bob = proxy("bob")
    bob.settle_dead(NOON)
    bob.append([row(id="2")])
    assert here.rows() == [("2", "bob")]
    bob.close()
    proxy("alice").settle_dead(NOON)
    assert sorted(here.rows()) == [("1", "alice"), ("2", "bob")]


def test_holds_that_came_back_are_settled_by_their_rows_and_their_releases(
    here: HubHere, backup: Backup, proxy: Proxy
) -> None:
    ledger = proxy()
    for turn in ("1", "2", "3"):
        hold(ledger, turn)
    backup.make()
    ledger.append([row(id="1")])
    ledger.release("default", "2")
    ledger.append([row(id="4", session="s2")])
    ledger.release("default", "3")
    ledger.close()
    backup.restore()
    proxy().settle_dead(NOON)
    assert here.ids() == ["1", "4"]
    with closing(open_ledger(here.ledger, journals=())) as opened:
        assert held(opened, CAP) == (20_000_000, 0)


def test_a_release_that_came_last_is_made_again(here: HubHere, backup: Backup, proxy: Proxy) -> None:
    ledger = proxy()
    ledger.append([row(id="1")])
    hold(ledger, "2")
    backup.make()
    ledger.release("default", "2")
    ledger.close()
    backup.restore()
    proxy().settle_dead(NOON)
    with closing(open_ledger(here.ledger, journals=())) as opened:
        assert held(opened, CAP) == (10_000_000, 0)


def completed(before: Row) -> Row:
    return amended(before, lines=(line("opus", "0.75", input=500),), usage_source="agent", detail="from a book")


def told_in_part(**fields: Any) -> Row:
    return row(line("opus", "0.5", input=90), usage_source="partial", at=NOON - 9 * MINUTE, **fields)


@pytest.mark.parametrize("last", [True, False])
def test_a_correction_is_made_again_once(here: HubHere, backup: Backup, proxy: Proxy, last: bool) -> None:
    ledger, before = proxy(), told_in_part(id="1")
    ledger.append([before])
    backup.make()
    assert ledger.correct(before, completed(before), NOON)
    if not last:
        ledger.append([row(id="2", session="s2")])
    backup.restore()
    ledger.append([row(id="3", session="s2")])
    with closing(open_ledger(here.ledger, journals=())) as opened:
        assert next(iter(opened.rows(Query()))).entry == completed(before).entry


def test_what_an_administrator_forgot_is_not_sent_back(here: HubHere, backup: Backup, proxy: Proxy) -> None:
    """Who signs in under the same name later has rows of their own, and none of those that are under the alias."""
    ledger = proxy()
    ledger.append([row(id="1")])
    proxy("root").forget_user("alice", "former-1")
    backup.make()
    ledger.append([row(id="2", session="s2")])
    backup.restore()
    ledger.append([row(id="3", session="s3")])
    assert sorted(here.rows()) == [("1", "former-1"), ("2", "alice"), ("3", "alice")]
    proxy("root").forget_user("alice", "former-2")
    assert proxy("alice").restored("default").processes == 0
    assert sorted(here.rows()) == [("1", "former-1"), ("2", "former-2"), ("3", "former-2")]


def test_another_hub_at_the_same_address_is_sent_nothing_of_the_old_one(
    here: HubHere, proxy: Proxy, request: pytest.FixtureRequest
) -> None:
    ledger = proxy()
    ledger.append([row(id="1")])
    here.stop()
    if here.ledger.startswith("sqlite"):
        for each in Path(here.ledger.removeprefix("sqlite:///")).parent.glob("hub.db*"):
            each.unlink()
    else:
        server: Server = request.getfixturevalue("postgres")
        server.execute("postgres", f"DROP DATABASE {name_of(here.ledger)} WITH (FORCE)")
        server.execute("postgres", f"CREATE DATABASE {name_of(here.ledger)}")
    here.start()
    ledger.append([row(id="2")])
    proxy().settle_dead(NOON)
    assert here.ids() == ["2"]


def test_so_is_another_organisation_of_the_same_ledger(
    here: HubHere, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = proxy()
    ledger.append([row(id="1")])
    monkeypatch.setitem(PEOPLE, "alice", replace(PEOPLE["alice"], organisation="other"))
    ledger.append([row(id="2")])
    proxy().settle_dead(NOON)
    with closing(open_ledger(here.ledger, journals=())) as opened:
        found = sorted((each.entry.id, each.origin.organisation) for each in opened.rows(Query()))
    assert found == [("1", "default"), ("2", "other")]


def test_what_was_given_up_is_told(
    backup: Backup, proxy: Proxy, warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "LARGEST", 4000)
    monkeypatch.setattr("acp_proxy.hub.api.restoring.AHEAD", 10**18)
    ledger = proxy()
    backup.make()
    for number in range(30):
        ledger.append([row(id=f"{number:02}")])
    backup.restore()
    ledger.append([row(id="30")])
    restored = ledger.restored("default")
    assert restored.incomplete == 1
    assert 0 < restored.rows < 30
    assert "not_kept_until" in str(warnings)


def test_many_rows_are_sent_in_parts_and_are_one_line_of_what_was_sent_again(
    here: HubHere, backup: Backup, proxy: Proxy
) -> None:
    ledger = proxy()
    backup.make()
    ledger.append([row(id=f"{number:04}") for number in range(600)])
    backup.restore()
    ledger.append([row(id="last")])
    assert len(here.ids()) == 601
    assert (ledger.restored("default").rows, ledger.restored("default").processes) == (600, 1)


def test_doctor_says_what_a_machine_sent_again(backup: Backup, proxy: Proxy) -> None:
    ledger = proxy()
    backup.make()
    ledger.append([row(id="1")])
    backup.restore()
    ledger.append([row(id="2")])
    ((text, is_trouble),) = server_findings(ledger, "default", NOON)
    assert text.endswith("; 1 row written again from 1 machine")
    assert not is_trouble


def test_a_hub_that_was_started_anew_has_all_and_is_sent_nothing(
    here: HubHere, proxy: Proxy, warnings: Warnings
) -> None:
    ledger = proxy()
    ledger.append([row(id="1")])
    here.stop()
    here.start()
    ledger.append([row(id="2")])
    assert here.ids() == ["1", "2"]
    assert ledger.restored("default").last is None
    assert warnings.events == []


@pytest.fixture
def earlier(here: HubHere, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From then on the hub is one that says of nothing where it is kept."""

    def earlier() -> None:
        here.stop()
        known = [answer for answer in api.ANSWERS if answer not in restoring.ANSWERS]
        monkeypatch.setattr(api, "ANSWERS", known)
        monkeypatch.setattr(Desk, "place", lambda _: None)
        here.start()

    return earlier


def test_a_hub_of_an_earlier_version_is_sent_rows_as_before(
    here: HubHere, proxy: Proxy, warnings: Warnings, earlier: Callable[[], None]
) -> None:
    first = proxy()
    first.append([row(id="1")])
    first.close()
    earlier()
    ledger = proxy()
    ledger.settle_dead(NOON)
    before = told_in_part(id="2")
    ledger.append([before])
    assert hold(ledger, "3") > 0
    ledger.release("default", "3")
    assert ledger.correct(before, completed(before), NOON)
    assert sorted(here.ids()) == ["1", "2"]
    assert (ledger.restored("default").last, ledger.fails_over, ledger.is_sure()) == (None, False, True)
    assert warnings.events == []


def test_what_is_lost_while_an_earlier_hub_answers_is_sent_again_by_the_next_one(
    here: HubHere, backup: Backup, proxy: Proxy, earlier: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = proxy()
    backup.make()
    ledger.append([row(id="1")])
    earlier()
    backup.restore()
    ledger.append([row(id="2")])
    assert here.ids() == ["2"]
    here.stop()
    monkeypatch.undo()
    here.start()
    ledger.append([row(id="3")])
    assert here.ids() == ["1", "2", "3"]


class AppendedBefore(Struct):
    """What an earlier proxy knew of an answer."""

    new: int
    refused: list[Any] = []


def test_a_proxy_of_an_earlier_version_reads_what_it_knows(proxy: Proxy) -> None:
    answer = wire.Appended(1, [], Place("ledger", "default", "alice", "now"))
    assert json_decoder(AppendedBefore).decode(msgspec.json.encode(answer)).new == 1


def test_files_of_processes_that_are_gone_are_looked_at_once_a_minute(
    here: HubHere, backup: Backup, proxy: Proxy
) -> None:
    """A server that shows the ledger looks for dead processes every few seconds."""
    ledger, serving = proxy(), proxy()
    backup.make()
    ledger.append([row(id="1")])
    ledger.close()
    serving.settle_dead(NOON)
    backup.restore()
    serving.settle_dead(NOON)
    assert here.ids() == []
    proxy().settle_dead(NOON)
    assert here.ids() == ["1"]


def test_rows_that_are_moved_are_kept_by_nobody(here: HubHere, proxy: Proxy, tmp_path: Path) -> None:
    """They are those of others, which nobody else may send; a copy is made again."""
    mover = proxy("root", "admins")
    mover.takes_over()
    mover.append([row(id="1")])
    assert here.rows() == [("1", "alice")]
    assert kept_on(tmp_path / "admins") == []


def test_what_is_kept_is_for_its_owner_alone(proxy: Proxy, tmp_path: Path) -> None:
    proxy().append([row(id="1")])
    (file,) = kept_on(tmp_path / "laptop")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
