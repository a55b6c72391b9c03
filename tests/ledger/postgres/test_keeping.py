"""A ledger that is set back, as by a failover or from a backup, gets back what it had acknowledged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.doctor.servers import server_findings
from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger, Grant
from acp_proxy.ledger.journal import kept
from harness.postgres import Server, asked, name_of
from harness.rows import ALICE, NOON, amended, line, row
from tests.ledger.holds import CAP, held, hold
from tests.ledger.postgres.backups import Backups
from tests.ledger.warned import Warnings
from tests.serve.house import Home as ServedHome

GRANT = Grant("g1", "default", "user", "cap", None, 5, "USD", NOON, NOON + 1, "alice", "because")


@pytest.fixture
def address(postgres: Server, request: pytest.FixtureRequest) -> str:
    return postgres.create(f"keeping_{abs(hash(request.node.name))}")


@pytest.fixture
def ledger(address: str, tmp_path: Path, warnings: Warnings) -> Iterator[BudgetLedger]:
    with closing(open_ledger(address, journals=[tmp_path], warn=warnings)) as opened:
        yield opened


@pytest.fixture
def backups(postgres: Server, address: str, ledger: BudgetLedger) -> Backups:
    return Backups(postgres, address)


def ids(ledger: BudgetLedger) -> list[str]:
    return [each.entry.id for each in ledger.rows(Query())]


def test_the_next_write_finds_that_rows_are_missing_and_writes_them_again(
    ledger: BudgetLedger, backups: Backups, warnings: Warnings
) -> None:
    ledger.append([row(id="1")])
    backups.make()
    ledger.append([row(id="2"), row(id="3")])
    ledger.append([row(id="4")])
    backups.restore()
    ledger.append([row(id="5")])
    assert ids(ledger) == ["1", "2", "3", "4", "5"]
    restored = ledger.restored("default")
    assert (restored.rows, restored.processes, restored.machines, restored.incomplete) == (3, 1, 1, 0)
    assert ledger.restored("default", (restored.last or 0) + 1).rows == 0
    assert warnings.events == ["ledger.went_back"]
    ((sums),) = ledger.summed(Query(), ())
    assert sums.rows == 5


def test_so_does_the_first_prompt(ledger: BudgetLedger, backups: Backups) -> None:
    """It is decided on with all that was spent."""
    backups.make()
    ledger.append([row(id="1")])
    backups.restore()
    (standing,) = hold(ledger, "t2", (CAP, "0.5")).standings
    assert standing.spent == 10_000_000


def test_and_who_is_only_asked_whether_all_is_safe(ledger: BudgetLedger, backups: Backups) -> None:
    backups.make()
    ledger.append([row(id="1")])
    backups.restore()
    assert ledger.is_sure()  # where no standby streams a failover has nowhere to go
    assert ids(ledger) == ["1"]


def test_rows_of_a_process_that_is_gone_are_written_again_when_the_ledger_is_opened(
    ledger: BudgetLedger, backups: Backups, address: str, tmp_path: Path
) -> None:
    backups.make()
    ledger.append([row(id="1")])
    ledger.close()
    backups.restore()
    with closing(open_ledger(address, journals=[])) as elsewhere:
        assert ids(elsewhere) == []
    with closing(open_ledger(address, journals=[tmp_path])) as here:
        assert ids(here) == ["1"]
    with closing(open_ledger(address, journals=[tmp_path])) as again:
        assert again.restored("default").processes == 1


def test_holds_that_came_back_are_settled_by_their_rows_and_their_releases(
    ledger: BudgetLedger, backups: Backups
) -> None:
    hold(ledger, "1", (CAP, "0.3"))
    hold(ledger, "2", (CAP, "0.3"))
    backups.make()
    ledger.append([row(id="1")])
    ledger.release("default", "2")
    backups.restore()
    ledger.append([row(id="3", session="s2")])
    assert held(ledger, CAP) == (20_000_000, 0)


def test_a_grant_is_given_again_once(ledger: BudgetLedger, backups: Backups) -> None:
    backups.make()
    ledger.grant(GRANT)
    backups.restore()
    ledger.append([row()])
    assert ledger.grants("default") == [GRANT]
    assert [each.count for each in ledger.decision_counts("default")] == [1]


def test_a_correction_is_made_again_once(ledger: BudgetLedger, backups: Backups) -> None:
    before = row(line("opus", "0.5"), id="1")
    after = amended(before, lines=(line("opus", "0.75"),))
    ledger.append([before])
    backups.make()
    assert ledger.correct(before, after, NOON)
    backups.restore()
    ledger.append([row(id="2", session="s2")])
    assert next(iter(ledger.rows(Query()))) == after
    assert ledger.restored("default").rows == 1
    assert not ledger.correct(before, after, NOON)


def test_another_ledger_at_the_same_address_is_given_nothing_of_the_old_one(
    ledger: BudgetLedger, backups: Backups, address: str, postgres: Server, tmp_path: Path
) -> None:
    ledger.append([row(id="1")])
    ledger.close()
    postgres.execute("postgres", f"DROP DATABASE {name_of(address)} WITH (FORCE)")
    postgres.execute("postgres", f"CREATE DATABASE {name_of(address)}")
    with closing(open_ledger(address, journals=[tmp_path])) as anew:
        assert ids(anew) == []
        anew.append([row(id="2")])
    with closing(open_ledger(address, journals=[tmp_path])) as anew:
        assert (ids(anew), anew.restored("default").processes) == (["2"], 0)


def test_what_was_given_up_is_told(
    ledger: BudgetLedger, backups: Backups, warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "LARGEST", 4000)
    backups.make()
    for number in range(30):
        ledger.append([row(id=f"{number:02}")])
    backups.restore()
    ledger.append([row(id="30")])
    restored = ledger.restored("default")
    assert restored.incomplete == 1
    assert 0 < restored.rows == len(ids(ledger)) - 1 < 30
    assert "not_kept_until" in str(warnings)


def test_doctor_and_the_page_say_what_was_written_again(
    ledger: BudgetLedger, backups: Backups, address: str, tmp_path: Path
) -> None:
    backups.make()
    ledger.append([row(id="1")])
    backups.restore()
    with ServedHome(tmp_path).serving("--ledger", address) as served:
        assert served.json("/api/live")["set_back"] is None
    ledger.append([row(id="2")])
    _, (text, is_trouble) = server_findings(ledger, "default", time.time_ns())
    assert text.endswith("; 1 row written again from 1 machine")
    assert not is_trouble
    with ServedHome(tmp_path).serving("--ledger", address) as served:
        assert f"ledger: {served.json('/api/live')['set_back']}" == text


def test_a_ledger_that_was_not_set_back_is_asked_nothing_more(ledger: BudgetLedger, address: str) -> None:
    for number in range(3):
        ledger.append([row(id=str(number))])
    assert ledger.is_sure()
    assert asked(address, "SELECT count(*) FROM writer") == [(1,)]
    assert ledger.restored(ALICE.organisation).last is None


def test_where_no_file_can_be_made_rows_are_written_as_before(address: str, tmp_path: Path, warnings: Warnings) -> None:
    (tmp_path / "file").touch()
    with closing(open_ledger(address, journals=[tmp_path / "file" / "journal"], warn=warnings)) as ledger:
        ledger.append([row(id="1")])
        ledger.append([row(id="2")])
        assert ids(ledger) == ["1", "2"]
    assert warnings.events == ["ledger.not_kept"]
