"""A real hot standby: it is read like any ledger, takes no writes, and takes over when its primary is gone."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from acp_proxy.ledger import LedgerReadOnlyError, LedgerUnavailableError, Query, open_ledger, open_reader
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.journal.recovery import pending
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.places import canonical_url, journal_directories
from acp_proxy.ledger.sql_ledger import SqlLedger
from harness.faults.link import linked
from harness.faults.trial import BUDGET, Home, until
from harness.postgres import Server, replicated
from harness.rows import NOON, row
from tests.core.accounts import usd
from tests.ledger.holds import CAP, GONE, held, hold
from tests.ledger.warned import Warnings
from tests.notify.house import channel, desk, notice
from tests.notify.receiver import receiving
from tests.serve.house import Home as ServedHome

Pair = tuple[Server, Server]

pytestmark = pytest.mark.xdist_group("standbys")


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with replicated() as pair:
        yield pair


@pytest.fixture
def name(pair: Pair, tmp_path: Path) -> str:
    """A database with an empty ledger."""
    primary, _ = pair
    open_ledger(primary.create(tmp_path.name), journals=()).close()
    return tmp_path.name


def either(first: Server, second: Server, name: str, wanted: str) -> str:
    """One URL for two servers, of which one is what is wanted."""
    return f"postgresql://owner@127.0.0.1:{first.port},127.0.0.1:{second.port}/{name}?target_session_attrs={wanted}"


class TestReading:
    def test_it_shows_what_the_primary_has(self, pair: Pair, name: str) -> None:
        primary, standby = pair
        with (
            closing(open_ledger(primary.url(name), journals=())) as ledger,
            closing(open_reader(standby.url(name), journals=())) as reader,
        ):
            for number in range(3):
                ledger.append([row(id=f"{number}")])
                assert list(reader.rows(Query())) == list(ledger.rows(Query()))
            assert reader.summed(Query(), ("model",)) == ledger.summed(Query(), ("model",))
            hold(ledger, "held", (CAP, "0.5"))
            assert reader.standing([CAP], NOON) == ledger.standing([CAP], NOON)

    def test_it_can_be_read_where_transactions_are_serializable(self, pair: Pair, name: str) -> None:
        """A hot standby has no such level, and refuses every statement of it."""
        primary, standby = pair
        primary.execute(name, f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'serializable'")
        with closing(open_ledger(primary.url(name), journals=())) as ledger:
            ledger.append([row(id="a")])
        with closing(open_reader(standby.url(name), journals=())) as reader:
            assert [found.entry.id for found in reader.rows(Query())] == ["a"]

    def test_what_the_dead_left_stays_for_those_who_write(self, pair: Pair, name: str, tmp_path: Path) -> None:
        primary, standby = pair
        warnings = Warnings()
        with closing(open_ledger(primary.url(name), journals=())) as ledger:
            hold(ledger, "dead", (CAP, "0.5"), owner=GONE)
            with closing(open_journal([tmp_path], standby.url(name), warnings)) as journal:
                journal.write(row(id="left"))
            with closing(open_reader(standby.url(name), journals=[tmp_path], warn=warnings)) as reader:
                (standing,) = reader.standing([CAP], NOON)
                assert (standing.spent, standing.held) == (0, usd("0.5"))
                assert list(reader.rows(Query())) == []
            assert warnings.events == []
            assert ledger.settle_dead(NOON + 2 * EXPIRY) == 1
            assert held(ledger, CAP) == (usd("0.5"), 0)
        assert len(list(tmp_path.glob("*.journal"))) == 1

    def test_commands_that_look_answer_as_on_the_primary(self, pair: Pair, name: str, tmp_path: Path) -> None:
        primary, standby = pair
        with closing(open_ledger(primary.url(name), journals=())) as ledger:
            ledger.append([row()])
            hold(ledger, "dead", (CAP, "0.5"), owner=GONE)
        for command in (["report", "--json"], ["status", "--json"], ["budget", "list"], ["export", "--focus"]):
            answer = typed(tmp_path, *command, "--ledger", standby.url(name))
            assert (answer.returncode, answer.stderr) == (0, ""), command
            assert answer.stdout
        assert (
            json.loads(typed(tmp_path, "report", "--json", "--ledger", standby.url(name)).stdout)["total"]["turns"] == 1
        )
        assert "acp_proxy_turns_total{" in typed(tmp_path, "metrics", "--ledger", standby.url(name)).stdout

    def test_the_page_and_metrics_show_it(self, pair: Pair, name: str, tmp_path: Path) -> None:
        primary, standby = pair
        with closing(open_ledger(primary.url(name), journals=())) as ledger:
            ledger.append([row(at=time.time_ns())])
            hold(ledger, "dead", (CAP, "0.5"), owner=GONE)
            home = ServedHome(tmp_path)
            home.configure('[[budget]]\nname = "cap"\nwindow = "day"\nlimit = { amount = "1", currency = "USD" }\n')
            with home.serving("--ledger", standby.url(name)) as served:
                assert served.json("/api/spend")["total"]["turns"] == 1
                for path in ("/api/sessions", "/api/budgets", "/api/live", "/healthz"):
                    assert served.ask(path).status == 200, path
                assert b"\nacp_proxy_ledger_up 1\n" in served.ask("/metrics").body
                ledger.append([row(at=time.time_ns())])
                assert until(lambda: served.json("/api/spend")["total"]["turns"] == 2)  # it keeps sums for a moment
                served.end()
                assert served.process.stderr
                assert served.process.stderr.read() == ""

    def test_one_whose_replay_stands_still_says_how_old_its_figures_are(
        self, pair: Pair, name: str, tmp_path: Path
    ) -> None:
        primary, standby = pair
        with closing(open_ledger(primary.url(name), journals=())) as ledger:
            ledger.append([row()])
            shown = ledger.replication()
            assert shown is not None
            assert (shown.standby, shown.standbys) == (False, 1)
            assert until(cast(SqlLedger, ledger).is_everywhere)
        with (
            closing(open_ledger(standby.url(name), journals=())) as reader,
            ServedHome(tmp_path).serving("--ledger", standby.url(name)) as served,
        ):
            found = reader.replication()
            assert found is not None
            assert (found.standby, found.behind) == (True, 0)
            standby.execute(name, "SELECT pg_wal_replay_pause()")
            try:
                # Whoever writes waits for it to be shown there, unless told otherwise.
                primary.execute(name, "SET synchronous_commit = local; CREATE TABLE unseen (a int)")
                assert until(lambda: (reader.replication() or found).behind)
                assert served.ask("/healthz").body.startswith(b"ok: a standby, ")
                scraped = served.ask("/metrics").body.decode()
                assert re.search(r'\nacp_proxy_ledger_replication_lag_seconds{role="standby"} 0*[1-9.]', scraped)
                assert served.json("/api/live")["standby"].startswith("a standby, ")
            finally:
                standby.execute(name, "SELECT pg_wal_replay_resume()")

    def test_it_can_be_copied(self, pair: Pair, name: str, tmp_path: Path) -> None:
        primary, standby = pair
        with closing(open_ledger(primary.url(name), journals=())) as ledger:
            ledger.append([row()])
        target = f"sqlite:///{tmp_path}/copy.db"
        answer = typed(tmp_path, "ledger", "copy", "--from", standby.url(name), "--to", target)
        assert (answer.returncode, answer.stderr) == (0, ""), answer
        with closing(open_reader(target, journals=())) as copied:
            assert len(list(copied.rows(Query()))) == 1

    def test_doctor_says_that_it_takes_no_writes(self, pair: Pair, name: str, tmp_path: Path) -> None:
        answer = typed(tmp_path, "doctor", "--ledger", pair[1].url(name))
        assert answer.returncode == 1
        assert "takes no writes: a standby, or a role that may only read\n" in answer.stdout

    def test_one_that_is_preferred_is_asked_as_long_as_it_is_there(self, pair: Pair, name: str) -> None:
        primary, standby = pair
        for first, second in (pair, (standby, primary)):
            url = either(first, second, name, "prefer-standby")
            with closing(open_ledger(url, journals=())) as ledger, pytest.raises(LedgerReadOnlyError):
                ledger.append([row()])
        with closing(open_ledger(either(primary, primary, name, "prefer-standby"), journals=())) as ledger:
            ledger.append([row()])

    async def test_a_notice_waits_for_one_who_serves_the_primary_and_that_is_told_once(
        self, pair: Pair, name: str
    ) -> None:
        primary, standby = pair
        async with receiving() as receiver:
            to = channel(receiver.url)
            async with desk(primary.url(name), to) as writing, desk(standby.url(name), to) as looking:
                await asyncio.to_thread(writing.note, notice())
                for _ in range(2):
                    await looking.round()
                assert looking.warnings.events == ["notify.waits"]
                assert receiver.requests == []
                await writing.round()
                assert len(receiver.requests) == 1


class TestWriting:
    def test_whatever_is_written_is_refused_in_the_same_line(self, pair: Pair, name: str) -> None:
        _, standby = pair
        expected = f"ledger postgresql://127.0.0.1:{standby.port}/{name}: takes no writes: a standby, or a role"
        with closing(open_ledger(standby.url(name), journals=())) as ledger:
            writes: list[Callable[[], object]] = [
                lambda: ledger.append([row()]),
                lambda: ledger.release("default", "turn"),
                lambda: ledger.beat("default", ["turn"], NOON),
                ledger.rebuild,
            ]
            for write in writes:
                with pytest.raises(LedgerReadOnlyError) as refused:
                    write()
                assert str(refused.value).startswith(expected)

    def test_a_connection_that_came_to_lead_to_a_standby_is_made_anew(self, pair: Pair, name: str) -> None:
        """As behind a name or a balancer that was slower than the failover."""
        primary, standby = pair
        with linked(standby.port) as link:
            url = primary.url(name).replace(f":{primary.port}/", f":{link.port}/")
            with closing(open_ledger(url, journals=())) as ledger:
                with pytest.raises(LedgerReadOnlyError):
                    ledger.append([row()])
                link.to = primary.port
                ledger.append([row()])

    def test_a_host_that_says_nothing_leaves_time_for_the_next_one(self, pair: Pair, name: str) -> None:
        primary, _ = pair
        with linked(primary.port) as link:
            link.fall_silent()
            url = primary.url(name).replace(
                f"127.0.0.1:{primary.port}", f"127.0.0.1:{link.port},127.0.0.1:{primary.port}"
            )
            with closing(open_ledger(url, patience=2, journals=())) as ledger:
                ledger.append([row()])
            link.speak()

    def test_none_of_the_hosts_being_what_is_asked_for_is_one_line(self, pair: Pair, name: str) -> None:
        _, standby = pair
        with pytest.raises(LedgerUnavailableError, match=r": session is read-only$"):
            open_ledger(either(standby, standby, name, "read-write"), journals=())


class TestFailover:
    def test_a_relay_on_a_standby_keeps_its_rows_until_it_takes_writes(self, tmp_path: Path) -> None:
        with replicated() as (primary, standby):
            open_ledger(primary.create("ledger"), journals=()).close()
            home = Home(tmp_path, "", standby.url("ledger"))
            with home.trial() as trial:
                trial.until_warned("takes no writes")
                trial.until_acked(trial.acked + 5)
                trial.signal("client", signal.SIGKILL)
                trial.until_over()
            assert trial.stderr.count("event=") == 1, trial.stderr
            assert pending(journal_directories(home.environ), canonical_url(home.url)) >= trial.acked
            primary.stop()
            standby.promote()
            verdict = home.verdict(trial)
            assert (verdict.defects, verdict.unbooked) == ([], set())

    def test_a_relay_and_a_server_go_on_where_the_standby_has_taken_over(self, tmp_path: Path) -> None:
        """Nothing is lost, for the standby had what was acknowledged, and nothing is booked twice."""
        with replicated() as (primary, standby):
            open_ledger(primary.create("ledger"), journals=()).close()
            url = either(primary, standby, "ledger", "read-write")
            home = Home(tmp_path, BUDGET.replace('"closed"', '"open"'), url)
            with ServedHome(tmp_path).serving("--ledger", url) as served, home.trial(60) as trial:
                trial.until_acked(10)
                primary.stop()
                standby.promote()
                trial.until_over()
                assert until(lambda: served.ask("/healthz").status == 200)
                assert served.ask("/api/spend").status == 200
                assert b"\nacp_proxy_ledger_up 1\n" in served.ask("/metrics").body
            verdict = home.verdict(trial)
            assert (verdict.defects, verdict.unbooked, len(verdict.acked)) == ([], set(), 60), trial.stderr


def typed(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC", "USER": "alice"}
    return subprocess.run(
        [sys.executable, "-m", "acp_proxy", *command], env=environ, capture_output=True, text=True, timeout=60
    )
