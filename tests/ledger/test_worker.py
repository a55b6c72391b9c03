"""The worker's thread: everything arrives, in order and once, however bad the ledger's day is."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from acp_proxy.core.entry import SessionState
from acp_proxy.core.money import Money
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import (
    LedgerError,
    LedgerForbiddenError,
    LedgerUnavailableError,
    Query,
    jobs,
    log_warning,
    open_ledger,
)
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.journal.writer import Journal, open_journal
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.places import canonical_url, sqlite_url
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from acp_proxy.ledger.sqlite.ledger import SqliteLedger
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.system.directories import default_ledger
from harness.places import make_writable
from harness.postgres import Server
from harness.rows import ALICE, NOON, line, row
from tests.ledger.processes import Process
from tests.ledger.warned import Warnings
from tests.threads import no_more_threads

WAIT = 30  # seconds after which a test has failed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger" / "ledger.db"


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    return tmp_path / "journals"


Make = Callable[[Path], LedgerWorker]


class Away:
    """A ledger that opens at the try after so many, and when each of them was."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self.tries = 0
        self.tried: SimpleQueue[float] = SimpleQueue()

    def opened(self) -> BudgetLedger:
        self.tried.put(time.monotonic())
        self.tries -= 1
        if self.tries >= 0:
            raise LedgerUnavailableError("away")
        return open_ledger(self.url, journals=())


@pytest.fixture
def away(path: Path, monkeypatch: pytest.MonkeyPatch) -> Away:
    """Its second try comes a hundredth of a second after the first."""
    monkeypatch.setattr(jobs, "_SHORTEST_DELAY", 0.01)
    return Away(path)


@pytest.fixture
def make(journals: Path, warnings: Warnings) -> Iterator[Make]:
    """Makes workers of one ledger, with a patience short enough for tests, and ends them."""
    made: list[LedgerWorker] = []

    def make_one(path: Path) -> LedgerWorker:
        url = canonical_url(f"sqlite:///{path}")
        open_one = partial(open_ledger, url, patience=0.01, warn=warnings, journals=[journals])
        made.append(LedgerWorker(open_one, open_journal([journals], url, warnings), warnings))
        return made[-1]

    yield make_one
    for worker in made:
        worker.close(0)


def ids(path: Path) -> list[str]:
    with closing(SqliteLedger(path)) as ledger:
        return [found.entry.id for found in ledger.rows(Query())]


def answer(worker: LedgerWorker, session: str = "s1") -> SessionState | None:
    """Also waits for everything that the worker was given before."""
    answers: SimpleQueue[SessionState | None] = SimpleQueue()
    worker.state_of(ALICE, session, answers.put)
    return answers.get(timeout=WAIT)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("COMMIT")


class TestWork:
    def test_rows_are_in_the_ledger_when_a_later_question_is_answered(self, make: Make, path: Path) -> None:
        worker = make(path)
        worker.append(row(line(cost="1"), id="a"))
        worker.append(row(line(cost="2"), id="b", state=SessionState(model="opus")))
        assert answer(worker) == SessionState(model="opus", costs=(Money.of("3", "USD"),))
        assert worker.pending == 0
        assert ids(path) == ["a", "b"]

    def test_nothing_is_opened_before_there_is_something_to_do(self, make: Make, path: Path) -> None:
        worker = make(path)
        assert worker.close(WAIT) == 0
        assert not path.exists()

    @pytest.mark.skipif(sys.platform == "darwin", reason="its threads have no clocks of their own")
    def test_while_there_is_nothing_to_do_it_does_not_wake_up(self, make: Make, path: Path) -> None:
        """Not once in a fifth of a second of several; what it still has to do it does in those before."""
        others, worker = set(threading.enumerate()), make(path)
        assert answer(worker) is None
        (its,) = set(threading.enumerate()) - others
        clock = time.pthread_getcpuclockid(its.ident or 0)

        def works() -> bool:
            before = time.clock_gettime_ns(clock)
            threading.Event().wait(0.2)
            return time.clock_gettime_ns(clock) != before

        assert not all(works() for _ in range(50))

    def test_what_is_to_be_done_at_first_is_done_once_after_what_it_was_opened_for(
        self, path: Path, warnings: Warnings
    ) -> None:
        done: SimpleQueue[int] = SimpleQueue()
        opened = partial(open_ledger, f"sqlite:///{path}", journals=())
        worker = LedgerWorker(opened, Journal(), warnings, lambda ledger: done.put(len(list(ledger.rows(Query())))))
        worker.append(row())
        assert done.get(timeout=WAIT) == 1
        assert answer(worker)
        assert worker.close(WAIT) == 0
        assert done.empty()

    def test_rows_gather_until_they_are_due_or_something_else_is_to_be_done(
        self, path: Path, journals: Path, warnings: Warnings
    ) -> None:
        due: SimpleQueue[tuple[float, Callable[[], object]]] = SimpleQueue()
        url = canonical_url(f"sqlite:///{path}")
        journal = open_journal([journals], url, warnings)
        opening: SimpleQueue[str] = SimpleQueue()

        def opened() -> BudgetLedger:
            opening.put(url)
            return open_ledger(url, journals=[journals])

        worker = LedgerWorker(opened, journal, warnings, later=lambda seconds, call: due.put((seconds, call)))
        worker.append(row(id="a"))
        worker.append(row(id="b"))
        soon, hand_over = due.get_nowait()
        assert due.empty()
        assert not path.exists()
        hand_over()
        assert opening.get(timeout=WAIT)
        worker.append(row(line(cost="3"), id="c"))
        not_so_soon, hand_over = due.get_nowait()
        assert 0 < soon < not_so_soon <= 1
        assert answer(worker)
        assert ids(path) == ["a", "b", "c"]
        worker.append(row(id="d"))
        assert due.empty()
        assert worker.close(WAIT) == 0
        assert ids(path) == ["a", "b", "c", "d"]
        hand_over()

    def test_rows_that_no_journal_keeps_do_not_gather(self, path: Path, warnings: Warnings) -> None:
        opened = partial(open_ledger, f"sqlite:///{path}", journals=())
        worker = LedgerWorker(opened, Journal(), warnings, later=lambda *_: pytest.fail("it would be lost meanwhile"))
        worker.append(row(id="a"))
        assert worker.close(WAIT) == 0
        assert ids(path) == ["a"]

    def test_a_session_stands_as_after_its_last_row_also_where_the_clock_was_set_back(
        self, make: Make, path: Path
    ) -> None:
        worker = make(path)
        worker.append(row(at=NOON + DAY, state=SessionState(model="ahead")))
        worker.append(row(at=NOON, state=SessionState(model="right")))
        found = answer(worker)
        assert found
        assert found.model == "right"

    def test_nothing_is_known_of_a_new_session(self, make: Make, path: Path) -> None:
        assert answer(make(path)) is None

    def test_a_title_is_kept_for_the_rows_before_it(self, make: Make, path: Path) -> None:
        worker = make(path)
        worker.append(row(state=SessionState(model="opus")))
        worker.note_session(ALICE, "s1", "A title", NOON)
        found = answer(worker)
        assert found
        assert found.title == "A title"

    def test_closing_writes_what_is_left_and_removes_the_journal(self, make: Make, path: Path, journals: Path) -> None:
        worker = make(path)
        for number in range(600):
            worker.append(row(id=f"{number:03}"))
        assert worker.close(WAIT) == 0
        assert len(ids(path)) == 600
        assert list(journals.iterdir()) == []

    def test_it_takes_over_what_a_dead_process_left(self, tmp_path: Path, make: Make, path: Path) -> None:
        worker = make(path)
        assert answer(worker) is None
        process = Process("journal", f"sqlite:///{path}", str(tmp_path / "journals"), "3")
        process.until_ready()
        process.kill()
        assert answer(make(path), "s1") == SessionState(model="opus", costs=(Money.of("0.02", "USD"),))

    def test_a_process_killed_with_rows_in_its_worker_loses_none_and_doubles_none(self, tmp_path: Path) -> None:
        environ = {"HOME": str(tmp_path)}
        url = sqlite_url(default_ledger(environ))
        process = Process("work", url, str(tmp_path), "200")
        process.until_ready()
        process.kill()
        directory = tmp_path / ".local" / "state" / "acp-proxy" / "journal"
        with closing(open_ledger(url, journals=[directory])) as ledger:
            assert [found.entry.id for found in ledger.rows(Query())] == [f"row-{number:03}" for number in range(200)]
        assert list(directory.iterdir()) == []


class TestOpenTurns:
    """What a proxy knew of a turn that it did not live to end."""

    def test_the_last_that_was_known_is_booked_when_the_process_dies(self, tmp_path: Path) -> None:
        assert self.booked_after("keep_open", tmp_path) == [("open", "0.03"), ("whole", "0.01")]

    def test_what_has_ended_is_not_booked_twice(self, make: Make, path: Path, journals: Path) -> None:
        worker = make(path)
        worker.keep_open(row(line(cost="0.1"), id="a"))
        worker.append(row(line(cost="0.3"), id="a"))
        assert worker.close(WAIT) == 0
        assert list(journals.iterdir()) == []
        assert ids(path) == ["a"]

    def test_what_is_known_by_now_takes_the_place_of_what_was_known(
        self, make: Make, path: Path, journals: Path
    ) -> None:
        worker = make(path)
        for cost in ("0.1", "0.2"):
            worker.keep_open(row(line(cost=cost), id="a"))
        worker.append(row(line(cost="0.3"), id="a"))
        assert worker.close(WAIT) == 0
        assert list(journals.iterdir()) == []

    def test_what_is_known_of_open_turns_leaves_room_for_rows(self, make: Make, path: Path, warnings: Warnings) -> None:
        worker = make(path)
        for number in range(120):  # more than a journal holds
            worker.keep_open(row(line("m" * 100_000), id=f"open {number}"))
        worker.append(row(line("m" * 100_000), id="a"))
        assert worker.close(WAIT) == 0
        assert ids(path) == ["a"]
        assert "journal.full" not in [event for event, _ in warnings.told]

    def test_a_turn_whose_row_finds_no_room_leaves_room_for_others_when_it_is_booked(
        self, make: Make, path: Path, journals: Path
    ) -> None:
        worker = make(path)
        assert answer(worker) is None
        worker.keep_open(row(line(cost="0.1"), id="a"))
        with locked(path):
            for number in range(120):  # more than a journal holds
                worker.append(row(line("m" * 100_000), id=f"{number:03}"))
            worker.append(row(line("m" * 100_000, "0.3"), id="a"))
        assert worker.close(WAIT) == 0
        assert list(journals.iterdir()) == []
        assert len(ids(path)) == 121

    def booked_after(self, what: str, home: Path) -> list[tuple[str, str]]:
        url = sqlite_url(default_ledger({"HOME": str(home)}))
        process = Process(what, url, str(home))
        process.until_ready()
        process.kill()
        with closing(open_ledger(url, journals=[home / ".local/state/acp-proxy/journal"])) as ledger:
            return sorted((found.entry.id, found.entry.costs[0].text) for found in ledger.rows(Query()))


class TestTrouble:
    def test_rows_wait_for_a_locked_ledger_and_the_caller_does_not(
        self, make: Make, path: Path, warnings: Warnings
    ) -> None:
        worker = make(path)
        assert answer(worker) is None
        with locked(path):
            for number in range(20):
                worker.append(row(id=f"{number:02}"))
            worker.state_of(ALICE, "s1", lambda _: None)
            assert worker.pending == 20
        assert answer(worker)
        assert ids(path) == [f"{number:02}" for number in range(20)]

    def test_what_cannot_be_written_in_time_is_left_to_the_next_start(
        self, make: Make, path: Path, journals: Path
    ) -> None:
        worker = make(path)
        assert answer(worker) is None
        with locked(path):
            worker.append(row(id="a"))
            assert worker.close(0.1) == 1
            assert worker.close(WAIT) == 1
            assert len(list(journals.iterdir())) == 1
        assert answer(make(path))
        assert ids(path) == ["a"]
        assert len(list(journals.iterdir())) == 1  # that of the second worker

    def test_a_question_that_is_forbidden_is_no_answer_to_the_one_after_it(
        self, make: Make, path: Path, warnings: Warnings
    ) -> None:
        worker = make(path)
        assert answer(worker) is None
        both_wait, answers = threading.Event(), SimpleQueue[str]()

        def forbidden(_: BudgetLedger) -> None:
            both_wait.wait(WAIT)
            raise LedgerForbiddenError("of somebody else")

        worker.ask(forbidden, lambda error: answers.put(str(error)), within=WAIT)
        worker.ask(lambda _: answers.put("allowed"), lambda error: answers.put(str(error)), within=WAIT)
        both_wait.set()
        assert [answers.get(timeout=WAIT), answers.get(timeout=WAIT)] == ["of somebody else", "allowed"]
        assert [event for event, _ in warnings.told] == ["ledger.forbidden"]

    def test_an_end_before_the_ledger_is_open_says_what_the_journal_keeps_and_what_nothing_does(
        self, path: Path, journals: Path, warnings: Warnings
    ) -> None:
        may_open = threading.Event()

        def opened() -> BudgetLedger:
            may_open.wait(WAIT)
            return open_ledger(f"sqlite:///{path}", journals=())

        worker = LedgerWorker(opened, open_journal([journals], f"sqlite:///{path}", warnings), warnings)
        worker.append(row(id="a"))
        worker.append(row(line("m" * 10_000_000), id="more than a journal takes"))
        assert worker.close(0.01) == 2
        told = [(event, fields["rows"]) for event, fields in warnings.told]
        assert told == [("ledger.rows_left", 1), ("ledger.rows_lost", 1)]
        may_open.set()
        assert worker.close(WAIT) == 0

    def test_an_end_without_a_journal_says_nothing_of_rows_that_are_left(self, path: Path, warnings: Warnings) -> None:
        may_open = threading.Event()

        def opened() -> BudgetLedger:
            may_open.wait(WAIT)
            return open_ledger(f"sqlite:///{path}", journals=())

        worker = LedgerWorker(opened, Journal(), warnings)
        worker.append(row(id="a"))
        assert worker.close(0.01) == 1
        assert [(event, fields["rows"]) for event, fields in warnings.told] == [("ledger.rows_lost", 1)]
        may_open.set()
        assert worker.close(WAIT) == 0

    def test_what_is_tried_anyway_is_done_while_a_row_has_to_wait(self, postgres: Server, journals: Path) -> None:
        """A hold would expire, and its budget admit somebody else, before the row that takes its place is there."""
        url = postgres.create("waiting_row")
        journal = open_journal([journals], url, log_warning)
        worker = LedgerWorker(partial(open_ledger, url, patience=2.0, journals=()), journal, log_warning)
        done, failed = SimpleQueue[str](), SimpleQueue[LedgerError]()
        with closing(PostgresLedger(url)) as holder:

            def locked(run: Run) -> None:
                run("LOCK TABLE turn IN SHARE MODE", ())
                worker.append(row(id="a"))
                worker.ask(lambda _: done.put("asked"), failed.put)
                worker.ask(lambda _: done.put("anyway"), failed.put, anyway=True)
                assert done.get(timeout=WAIT) == "anyway"
                assert "no answer in time" in str(failed.get(timeout=WAIT))
                assert worker.pending == 1

            holder._write(locked)
            assert worker.close(WAIT) == 0
            assert [found.entry.id for found in holder.rows(Query())] == ["a"]

    def test_what_has_time_is_tried_again_until_the_ledger_is_back(
        self, make: Make, path: Path, warnings: Warnings
    ) -> None:
        worker = make(path)
        assert answer(worker) is None
        told: SimpleQueue[object] = SimpleQueue()
        with locked(path):
            worker.append(row(id="a"))
            worker.ask(lambda ledger: told.put(len(list(ledger.rows(Query())))), told.put, within=WAIT)
            worker.ask(lambda _: None, told.put)
            assert "database is locked" in str(told.get(timeout=WAIT))  # that which was tried once
        assert told.get(timeout=WAIT) == 1

    @pytest.mark.parametrize(("error", "within"), [(LedgerUnavailableError, 0.1), (LedgerError, WAIT)])
    def test_what_has_time_fails_when_that_is_over_or_nothing_will_help(
        self, make: Make, path: Path, error: type[LedgerError], within: float
    ) -> None:
        def job(_: BudgetLedger) -> None:
            raise error("no")

        failed: SimpleQueue[LedgerError] = SimpleQueue()
        make(path).ask(job, failed.put, within=within)
        assert str(failed.get(timeout=WAIT / 2)) == "no"

    @pytest.mark.parametrize("options", [{"within": 0.04}, {"anyway": True}])
    def test_what_has_no_time_for_another_try_or_nothing_before_it_fails_at_the_first(
        self, make: Make, path: Path, options: dict[str, Any]
    ) -> None:
        worker, tries, failed = make(path), list[int](), SimpleQueue[LedgerError]()

        def job(_: BudgetLedger) -> None:
            tries.append(1)
            raise LedgerUnavailableError("no")

        assert answer(worker) is None  # it is open
        worker.ask(job, failed.put, **options)
        assert str(failed.get(timeout=WAIT)) == "no"
        assert tries == [1]

    def test_a_ledger_that_is_away_is_tried_ever_more_seldom_and_at_the_end_again_and_again(
        self, away: Away, journals: Path, warnings: Warnings
    ) -> None:
        worker = LedgerWorker(away.opened, open_journal([journals], away.url, warnings), warnings)
        away.tries = 12
        worker.append(row(id="a"))
        first, *_, last = [away.tried.get(timeout=WAIT) for _ in range(7)]
        assert last - first > 0.6
        assert worker.close(3) == 0

    def test_a_ledger_that_is_away_for_hours_is_still_tried_every_few_seconds(
        self, away: Away, journals: Path, warnings: Warnings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jobs, "_LONGEST_DELAY", 0.02)
        worker = LedgerWorker(away.opened, open_journal([journals], away.url, warnings), warnings)
        away.tries = 14
        worker.append(row(id="a"))
        assert len([away.tried.get(timeout=WAIT / 2) for _ in range(14)]) == 14  # doubled on, the last took a minute
        assert worker.close(WAIT) == 0

    def test_while_somebody_waits_a_ledger_that_is_away_is_tried_again_and_again(
        self, away: Away, journals: Path, warnings: Warnings
    ) -> None:
        worker = LedgerWorker(away.opened, open_journal([journals], away.url, warnings), warnings)
        away.tries, told = 12, SimpleQueue[object]()
        worker.ask(lambda _: told.put("done"), told.put, within=5)
        assert told.get(timeout=WAIT) == "done"
        worker.close(WAIT)

    def test_where_no_thread_can_be_started_what_is_asked_fails_at_once_and_rows_wait(
        self, make: Make, path: Path, warnings: Warnings
    ) -> None:
        worker, failed, done = make(path), SimpleQueue[LedgerError](), list[BudgetLedger]()
        with no_more_threads():
            worker.append(row(id="a"))
            worker.do(done.append)
            worker.ask(lambda _: None, failed.put, within=WAIT)
            assert "can't start new thread" in str(failed.get_nowait())
        worker.append(row(id="b"))
        assert answer(worker)
        assert ids(path) == ["a", "b"]
        assert len(done) == 1
        assert warnings.events == ["ledger.unavailable"]

    def test_where_no_thread_can_be_started_rows_are_written_at_the_end(self, make: Make, path: Path) -> None:
        worker = make(path)
        with no_more_threads():
            worker.append(row(id="a"))
            assert worker.close(WAIT) == 0
        assert ids(path) == ["a"]

    def test_what_finds_no_memory_is_tried_again(self, make: Make, path: Path, warnings: Warnings) -> None:
        worker, tries = make(path), list[int]()

        def job(_: BudgetLedger) -> None:
            tries.append(1)
            if len(tries) == 1:
                raise MemoryError

        worker.do(job)
        assert answer(worker) is None
        assert len(tries) == 2
        assert warnings.told == [("ledger.unavailable", {"error": "no memory is left", "pending": 0})]

    def test_each_kind_of_trouble_is_told_once(self, make: Make, path: Path, warnings: Warnings) -> None:
        worker = make(path)
        assert answer(worker) is None
        with locked(path):
            for _ in range(5):
                worker.append(row())
            assert warnings.wait("ledger.unavailable")
            worker.close(0.3)
        assert warnings.events == ["ledger.unavailable"]
        assert warnings.told[0][1]["error"] == f"ledger {path}: database is locked"

    def test_rows_arrive_when_a_full_disk_has_room_again(
        self, make: Make, small_disk: Path, warnings: Warnings
    ) -> None:
        path = small_disk / "ledger.db"
        (small_disk / "ballast").write_bytes(bytes(1016 * 1024))
        worker = make(path)
        worker.append(row(id="a"))
        assert warnings.wait("ledger.unavailable")
        assert worker.pending == 1
        (small_disk / "ballast").unlink()
        assert answer(worker)
        assert ids(path) == ["a"]
        worker.close(WAIT)

    def test_rows_arrive_when_a_read_only_directory_can_be_written(
        self, make: Make, read_only_directory: Path, warnings: Warnings
    ) -> None:
        worker = make(read_only_directory / "ledger.db")
        worker.append(row(id="a"))
        assert warnings.wait("ledger.unavailable")
        assert worker.pending == 1
        make_writable(read_only_directory)
        assert answer(worker)
        assert ids(read_only_directory / "ledger.db") == ["a"]
        worker.close(WAIT)

    def test_a_ledger_of_a_newer_version_costs_no_row(self, make: Make, path: Path, warnings: Warnings) -> None:
        SqliteLedger(path).close()
        set_version(path, 99)
        worker = make(path)
        worker.append(row(id="a"))
        assert warnings.wait("ledger.unavailable")
        assert worker.close(0.1) == 1
        assert worker.close(WAIT) == 1  # its thread has ended: nobody else takes the journal over
        set_version(path, len(MIGRATIONS))
        assert answer(make(path))
        assert ids(path) == ["a"]

    def test_a_row_that_cannot_be_kept_is_reported_and_stops_no_other(
        self, make: Make, path: Path, warnings: Warnings, journals: Path
    ) -> None:
        worker = make(path)
        worker.append(row(id="a"))
        worker.append(row(line(input=2**63), id="too large"))
        worker.append(row(id="b"))
        assert worker.close(WAIT) == 0
        assert ids(path) == ["a", "b"]
        assert [(event, fields["id"]) for event, fields in warnings.told] == [("ledger.row_refused", "too large")]
        assert list(journals.iterdir()) == []

    def test_without_a_journal_rows_are_kept_in_memory(self, path: Path, warnings: Warnings) -> None:
        worker = LedgerWorker(partial(open_ledger, f"sqlite:///{path}", journals=()), Journal(), warnings)
        worker.append(row(id="a"))
        assert worker.close(WAIT) == 0
        assert ids(path) == ["a"]

    def test_rows_beyond_the_bound_of_memory_are_dropped_told_once_and_counted(
        self, path: Path, warnings: Warnings
    ) -> None:
        worker = LedgerWorker(
            partial(open_ledger, f"sqlite:///{path}", patience=0.01, journals=()), Journal(), warnings
        )
        assert answer(worker) is None
        with locked(path):
            for number in range(10_003):
                worker.append(row(id=f"{number:05}"))
            assert (worker.pending, worker.dropped) == (10_000, 3)
            assert warnings.wait("ledger.rows_dropped")
        assert worker.close(WAIT) == 0
        assert len(ids(path)) == 10_000
        dropped = [fields for event, fields in warnings.told if event == "ledger.rows_dropped"]
        assert dropped == [{"error": "too many rows wait in memory", "most": 10_000}, {"rows": 3}]

    def test_rows_beyond_the_journals_bound_are_kept_in_memory_with_a_warning(
        self, make: Make, path: Path, warnings: Warnings
    ) -> None:
        worker = make(path)
        assert answer(worker) is None
        with locked(path):
            for number in range(120):
                worker.append(row(line("m" * 100_000), id=f"{number:03}"))
            assert warnings.wait("journal.full")
        assert answer(worker)
        assert len(ids(path)) == 120

    def test_a_title_that_the_ledger_refuses_bars_no_row_behind_it(
        self, make: Make, path: Path, warnings: Warnings
    ) -> None:
        worker = make(path)
        worker.note_session(ALICE, "s1", "half \ud83d", 1)
        worker.append(row(id="a"))
        assert answer(worker)
        assert ids(path) == ["a"]
        ((event, _),) = warnings.told
        assert event == "ledger.failed"

    def test_a_job_that_fails_by_a_mistake_of_ours_does_not_end_the_thread_nor_keep_who_asked_waiting(
        self, make: Make, path: Path, warnings: Warnings
    ) -> None:
        def mistaken(_: object) -> None:
            raise ZeroDivisionError("ours")

        worker, failed = make(path), SimpleQueue[LedgerError]()
        worker.state_of(ALICE, "s1", mistaken)
        worker.ask(mistaken, failed.put, within=WAIT)
        assert str(failed.get(timeout=WAIT)) == "the ledger failed"
        worker.append(row(id="a"))
        assert answer(worker)
        assert warnings.told == [("ledger.failed", {"error": "ZeroDivisionError: ours"})]


def set_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
