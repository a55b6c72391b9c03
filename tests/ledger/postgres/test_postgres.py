"""What is PostgreSQL's own: conflicts, lost servers, poolers, and what its columns cannot hold."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from msgspec.structs import replace

from acp_proxy.ledger import LedgerError, LedgerUnavailableError, Query, open_ledger
from acp_proxy.ledger.accounts.balances import ANEW
from acp_proxy.ledger.accounts.parts import union_all
from acp_proxy.ledger.accounts.spending import spent
from acp_proxy.ledger.budgets import EXPIRY, Grant
from acp_proxy.ledger.dialects import POSTGRES
from acp_proxy.ledger.journal.recovery import append_all
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.places import canonical_url
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from acp_proxy.ledger.postgres.transactions import Transactions
from acp_proxy.ledger.postgres_address import Address
from acp_proxy.ledger.reading.costliest import read_costliest
from acp_proxy.ledger.reading.recent import Recent
from acp_proxy.ledger.reading.rows import CHUNK
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.sums.buckets import QUARTER_HOUR
from acp_proxy.ledger.sums.reading import _sql_of_totals
from harness.postgres import Server, asked, name_of, running
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import TABLES
from tests.ledger.holds import CAP, GONE, account, held, hold
from tests.ledger.processes import Process
from tests.ledger.steps import gone_since
from tests.ledger.warned import Warnings

OPERATING = (Path(__file__).parents[3] / "docs/operating.md").read_text(encoding="utf-8")

_numbers = iter(range(10**6))


@pytest.fixture
def empty(postgres: Server) -> str:
    """The URL of a database without a ledger."""
    return postgres.create(f"empty{next(_numbers)}")


class TestSchema:
    def test_processes_that_open_a_new_ledger_at_once_all_get_it(self, empty: str) -> None:
        processes = [Process("first_open", empty) for _ in range(6)]
        for process in processes:
            process.until_ready()
        for process in processes:
            process.go_on()
        assert [process.wait() for process in processes] == [0] * 6
        with closing(open_ledger(empty, journals=())) as ledger:
            assert f"schema {len(MIGRATIONS)}" in ledger.check()

    def test_a_ledger_of_the_version_before_is_brought_up_with_its_rows(self, postgres: Server, empty: str) -> None:
        with closing(open_ledger(empty, journals=())) as ledger:
            ledger.append([row(id="a")])
        version = MIGRATIONS.index(ANEW)
        gone = f"{gone_since(version)}; DROP INDEX total_by_bucket"
        before = f"{gone}; UPDATE acp_proxy_schema SET version = {version}"
        postgres.execute(name_of(empty), before)
        with closing(open_ledger(empty, journals=())) as ledger:
            assert [found.entry.id for found in ledger.rows(Query())] == ["a"]
            assert f"schema {len(MIGRATIONS)}" in ledger.check()

    def test_a_ledger_of_a_newer_version_is_refused_in_one_line(self, postgres: Server, empty: str) -> None:
        open_ledger(empty, journals=()).close()
        postgres.execute(name_of(empty), "UPDATE acp_proxy_schema SET version = 99")
        with pytest.raises(LedgerError, match=r"written by a newer acp-proxy.*update it$"):
            open_ledger(empty, journals=())

    def test_an_open_ledger_notices_that_a_newer_version_changed_it(self, postgres: Server, empty: str) -> None:
        with closing(open_ledger(empty, journals=())) as ledger:
            ledger.append([row(id="before")])
            postgres.execute(name_of(empty), "UPDATE acp_proxy_schema SET version = version + 1")
            with pytest.raises(LedgerError, match=r"written by a newer acp-proxy: update it$"):
                ledger.append([row(id="meanwhile")])
            postgres.execute(name_of(empty), "UPDATE acp_proxy_schema SET version = version - 1")
            ledger.append([row(id="after")])
            assert {found.entry.id for found in ledger.rows(Query())} == {"before", "after"}

    def test_tables_of_another_program_are_left_alone(self, postgres: Server, empty: str) -> None:
        postgres.execute(name_of(empty), "CREATE TABLE turn (precious TEXT)")
        with pytest.raises(LedgerError, match=r"already exists$"):
            open_ledger(empty, journals=(), patience=1)
        postgres.execute(name_of(empty), "INSERT INTO turn VALUES ('kept')")

    def test_a_few_hours_are_summed_without_reading_all_totals(self, postgres: Server, empty: str) -> None:
        with closing(PostgresLedger(empty)) as ledger:
            ledger.append([row(line(f"model {number}")) for number in range(100)])
            more = "SELECT org_id, level, series, bucket - n" + ", 1" * 13 + " FROM total, generate_series(1, 300) n"
            postgres.execute(name_of(empty), f"INSERT INTO total {more} WHERE level = 0; ANALYZE")
            asked = _sql_of_totals(Query(), (), "")
            plan = ledger._read(f"EXPLAIN {asked}", ("default", 0, NOON // QUARTER_HOUR - 4, NOON // QUARTER_HOUR))
            assert "total_by_bucket on total" in str(plan)

    @pytest.mark.parametrize("window", ["day", "month", "rolling:24h"])
    def test_what_a_window_has_spent_is_found_without_reading_all_totals(
        self, postgres: Server, empty: str, window: str
    ) -> None:
        of = account(budget("9 USD", window))
        question, values = union_all(spent(0, of, of.bounds, POSTGRES))
        with closing(PostgresLedger(empty)) as ledger:
            ledger.append([row(line(f"model {number}")) for number in range(100)])
            more = "SELECT org_id, level, series, bucket - n" + ", 1" * 13 + " FROM total, generate_series(1, 300) n"
            postgres.execute(name_of(empty), f"INSERT INTO total {more} WHERE level < 3; ANALYZE")
            plan = str(ledger._read(f"EXPLAIN {question}", values))
        assert "total_by_bucket" in plan
        assert "Seq Scan on total" not in plan

    def test_a_part_of_the_turns_is_known_to_be_small_when_the_costliest_are_looked_for(
        self, postgres: Server, empty: str
    ) -> None:
        questions = list[tuple[str, Sequence[Any]]]()

        def read(sql: str, values: Sequence[Any]) -> list[Any]:
            questions.append((sql, values))
            return ledger._read(sql, values)

        with closing(PostgresLedger(empty)) as ledger:
            ledger.append([row()])
            changes = {"turn": "'id', id || n, 'started_at', started_at + n", "line": "'turn', turn || n"}
            for table, changed in changes.items():
                copy = f"(jsonb_populate_record({table}, jsonb_build_object({changed}))).*"
                copies = f"SELECT {copy} FROM {table}, generate_series(1, {10 * CHUNK}) n"
                postgres.execute(name_of(empty), f"INSERT INTO {table} {copies}; ANALYZE {table}")
            read_costliest(read, Query(), ("USD",), 1, POSTGRES)
            parts = [each for each in questions if "GROUP BY" in each[0]]
            plan = str(ledger._read(f"EXPLAIN {parts[5][0]}", parts[5][1]))
        assert len(parts) == 11
        assert [int(rows) <= CHUNK for rows in re.findall(r" on turn t .*?rows=(\d+)", plan)] == [True]

    def test_a_session_is_found_by_its_id_in_one_journey_however_many_users_there_are(self, empty: str) -> None:
        answers = list[list[Any]]()

        def read(sql: str, values: Sequence[Any]) -> list[Any]:
            answers.append(ledger._read(sql, values))
            return answers[-1]

        with closing(PostgresLedger(empty)) as ledger:
            ledger.append([row(session=f"s{n % 10}", origin=replace(ALICE, user=f"user {n}")) for n in range(30)])
            found = [session.origin.user for session in Recent(read, POSTGRES).named("s7")]
        assert (found, len(answers)) == (["user 17", "user 27", "user 7"], 1)

    def test_every_key_but_the_version_leads_with_the_organisation(self, empty: str) -> None:
        open_ledger(empty, journals=()).close()
        first_columns = """
            SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
            JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public'
        """
        found = asked(empty, first_columns)
        assert {column for table, column in found if table != "acp_proxy_schema"} == {"org_id"}


class TestTrouble:
    def test_it_goes_on_after_the_server_was_restarted(self) -> None:
        with running() as server, closing(open_ledger(server.create("l"), journals=())) as ledger:
            ledger.append([row(id="a")])
            server.stop()
            with pytest.raises(LedgerUnavailableError, match=r"^ledger postgresql://127.0.0.1:\d+/l: "):
                ledger.append([row(id="b")])
            server.start()
            ledger.append([row(id="b")])
            assert [found.entry.id for found in ledger.rows(Query())] == ["a", "b"]

    def test_a_connection_that_was_cut_is_made_anew_unnoticed(self, postgres: Server, empty: str) -> None:
        with closing(open_ledger(empty, journals=())) as ledger:
            postgres.cut(name_of(empty))
            ledger.append([row()])

    def test_sums_are_whole_on_a_server_that_has_lost_what_a_process_knew(self, postgres: Server, empty: str) -> None:
        """As one restored from a backup, or a standby that lagged behind when it took over."""
        with closing(open_ledger(empty, journals=())) as ledger:
            ledger.append([row(id="lost")])
            lost = "; ".join(f"DELETE FROM {table}" for table in TABLES)
            postgres.execute(name_of(empty), lost)
            postgres.cut(name_of(empty))
            ledger.append([row(id="after")])
            assert [sums.rows for sums in ledger.summed(Query(), ("model",))] == [1]

    def test_a_conflict_is_repeated_and_both_rows_are_kept(self, postgres: Server) -> None:
        url = postgres.create(f"conflict{next(_numbers)}", "serializable")
        open_ledger(url, journals=()).close()
        threads = [threading.Thread(target=append_some, args=(url, name)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        with closing(open_ledger(url, journals=())) as ledger:
            (sums,) = ledger.summed(Query(), ())
            assert sums.rows == len(list(ledger.rows(Query()))) == 80

    def test_what_may_take_long_is_repeated_twice_after_a_conflict_however_late_it_comes(self, empty: str) -> None:
        tries = list[float]()

        def work(run: Run) -> None:
            tries.append(0 if tries else 2.1)  # beyond the patience
            run("SELECT pg_sleep(?)", (tries[-1],))
            run("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$", ())

        with (
            closing(Transactions(Address.of(empty), 2, lambda: None)) as transactions,
            pytest.raises(LedgerUnavailableError, match="40P01"),
        ):
            transactions.run(work, longest=60)
        assert len(tries) == 3

    def test_a_lock_that_lasts_longer_than_the_patience_is_unavailability(self, empty: str) -> None:
        with closing(PostgresLedger(empty, patience=1.0)) as ledger, closing(PostgresLedger(empty)) as holder:

            def locked(run: Run) -> None:
                run("LOCK TABLE turn", ())
                with pytest.raises(LedgerUnavailableError, match="no answer in time"):
                    ledger.append([row()])

            holder._write(locked)
            ledger.append([row()])

    def test_a_user_whom_the_server_does_not_know_is_not_named(self, empty: str) -> None:
        with pytest.raises(LedgerError, match=r"^ledger postgresql://127\.0\.0\.1:\d+/\w+: role does not exist$"):
            open_ledger(empty.replace("owner:secret", "mallory:secret"), journals=())

    def test_a_nul_costs_no_row(self, empty: str) -> None:
        with closing(open_ledger(empty, journals=())) as ledger:
            ledger.append([row(id="a", detail="before\0after")])
            assert [found.entry.detail for found in ledger.rows(Query())] == ["before\ufffdafter"]

    def test_a_name_that_no_index_takes_costs_that_row_alone(self, empty: str) -> None:
        with closing(open_ledger(empty, journals=())) as ledger:
            warnings = Warnings()
            append_all(ledger, [row(origin=replace(ALICE, agent=secrets.token_hex(10_000))), row()], warnings)
            assert warnings.events == ["ledger.row_refused"]
            assert [each.origin for each in ledger.rows(Query())] == [ALICE]

    def test_a_role_that_only_adds_rows_is_enough_for_proxies_and_can_take_none_back(
        self, postgres: Server, empty: str
    ) -> None:
        open_ledger(empty, journals=()).close()
        (sql,) = re.findall(r"```sql\n(CREATE ROLE proxies.*?)```", OPERATING, re.DOTALL)
        postgres.execute(name_of(empty), sql)
        url = empty.replace("owner:secret", "proxies:secret")
        with closing(open_ledger(url, journals=())) as ledger:
            for number in range(70):  # some of them are added up
                turn = f"{number:08x}-0000-7000-8000-000000000000"
                assert hold(ledger, turn, (CAP, "0.01")).admitted
                ledger.beat("default", [turn], NOON + EXPIRY)
                ledger.append([row(id=turn)])
            hold(ledger, "dead", (CAP, "0.01"), owner=GONE)
            assert ledger.settle_dead(NOON) == 1
            assert held(ledger, CAP) == (usd("0.71"), 0)
            assert sum(sums.rows for sums in ledger.summed(Query(), ())) == 71
            assert "71 rows" in ledger.check()
            with pytest.raises(LedgerError, match="permission denied for table granted"):
                ledger.grant(Grant("g", "default", "user", "daily", None, 1, "USD", NOON, NOON + 1, "a", "b"))
        for taking_back in ("DELETE FROM line", "UPDATE line SET cost_nano = 0", "TRUNCATE turn", "DROP TABLE turn"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                postgres.execute(name_of(empty), f"SET ROLE proxies; {taking_back}")

    def test_behind_a_pooler_no_statement_outlives_its_transaction(self, empty: str) -> None:
        with closing(open_ledger(f"{empty}?pgbouncer=true", journals=())) as ledger:
            ledger.append([row()])
            assert len(list(ledger.rows(Query()))) == 1
            assert isinstance(ledger, PostgresLedger)
            assert ledger._read("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''", ()) == [(0,)]

    def test_a_pooler_that_nobody_told_of_is_noticed(self, empty: str) -> None:
        """What it does to a session shows as statements that are gone."""
        with closing(PostgresLedger(empty)) as ledger:
            ledger.append([row()])
            ledger._read("DEALLOCATE ALL", ())
            ledger.append([row()])
            assert ledger._read("SELECT count(*) FROM turn", ()) == [(2,)]


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("postgresql://alice:secret@db.example/ledger", "postgresql://db.example:5432/ledger"),
        ("postgres://DB.example:5432/ledger?sslmode=require&pgbouncer=true", "postgresql://db.example:5432/ledger"),
        ("postgresql:///ledger?host=/run/postgresql", "postgresql:///run/postgresql/ledger"),
        ("postgresql://u:p@[::1]:6543/l", "postgresql://[::1]:6543/l"),
        ("postgresql://u:p%2Fq@one:1,two:2/l", "postgresql://one:1,two:2/l"),
        ("postgresql:///l?service=team", "postgresql:///l?service=team"),
        ("postgresql://h/l?options=-c%20search_path%3Done%20-c%20jit%3Doff", "postgresql://h:5432/l?search_path=one"),
        (
            "postgresql://h/l?options=--search-path%3Dzero%20-csearch_path%3Done",
            "postgresql://h:5432/l?search_path=one",
        ),
    ],
)
def test_a_ledger_is_the_same_however_its_url_is_spelt(url: str, canonical: str) -> None:
    assert canonical_url(url) == canonical


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://alice:SEC/RET@db.example/ledger",
        "postgresql://alice:SEC/RET",
        "postgresql://alice:SEC/RET@db.example:5432/ledger",
        "postgresql://alice:SEC#RET@db.example/ledger",
        "postgresql://alice:SEC?RET@db.example/ledger",
        "postgresql://db.example:port/ledger",
        "postgresql://one:5432,two:port/ledger",
    ],
)
def test_a_url_that_cannot_be_read_is_one_line_that_keeps_secrets(url: str) -> None:
    with pytest.raises(LedgerError) as refused:
        open_ledger(url, journals=())
    assert (
        str(refused.value)
        == "ledger URL that cannot be read: a port is a number; in a password /, ? and # are %2F, %3F and %23"
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("sslmode=maybe", 'invalid sslmode value: "maybe"'),
        ("sslmod=require", "unknown option sslmod: settings of the server are options=-c%20NAME%3DVALUE"),
        ("search_path=other", "unknown option search_path: settings of the server are options=-c%20NAME%3DVALUE"),
        ("connect_timeout=soon", "bad value for connect_timeout: 'soon'"),
        ("keepalives_idle=a", 'invalid integer value "a" for connection option "keepalives_idle"'),
        ("port=1,2", "several ports or addresses, expected as many as there are hosts"),
        ("service=nowhere", 'definition of service "nowhere" not found'),
        ("password=SEC%RET", "cannot be read: in a password % is %25, and : @ / ? # are %3A, %40, %2F, %3F, %23"),
    ],
)
def test_an_option_that_libpq_does_not_take_is_one_line_that_names_it(option: str, said: str, empty: str) -> None:
    with pytest.raises(LedgerError) as refused:
        open_ledger(f"{empty}?{option}", journals=())
    assert re.sub("^ledger postgresql://[^ ]+: ", "", str(refused.value)) == said
    assert not isinstance(refused.value, LedgerUnavailableError)


def test_options_of_libpq_do_what_they_do_there(empty: str) -> None:
    options = "connect_timeout=10&keepalives=1&keepalives_idle=7&load_balance_hosts=random&application_name=x"
    options += "&options=-c%20work_mem%3D1MB"
    with closing(PostgresLedger(f"{empty}?{options}")) as ledger:
        asked = "SELECT current_setting('application_name'), current_setting('work_mem')"
        assert ledger._read(asked, ()) == [("x", "1MB")]
    with closing(PostgresLedger(empty)) as ledger:
        assert ledger._read("SELECT current_setting('application_name')", ()) == [("acp-proxy",)]


def test_a_service_may_say_where_the_ledger_is(empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "services").write_text(f"[ours]\nhost=127.0.0.1\nport={urlsplit(empty).port}\nuser=owner\n")
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    with closing(open_ledger(f"postgresql:///{name_of(empty)}?service=ours", journals=())) as ledger:
        ledger.append([row()])
        assert len(list(ledger.rows(Query()))) == 1


def test_a_command_that_only_looks_says_that_a_new_database_has_nothing_yet(empty: str) -> None:
    command = [sys.executable, "-m", "acp_proxy", "report", "--ledger", empty]
    for _ in range(2):
        found = subprocess.run(command, check=True, capture_output=True, text=True)
        assert found.stdout.partition(":")[0] == "Nothing in the ledger yet"
        assert found.stderr.endswith(
            ": there is no ledger in this database: expected one that `acp-proxy run` has made\n"
        )
        assert found.stderr.count("\n") == 1


def test_a_command_reports_from_a_database(empty: str) -> None:
    with closing(open_ledger(empty, journals=())) as ledger:
        ledger.append([row()])
    command = [sys.executable, "-m", "acp_proxy", "report", "--ledger", empty, "--json"]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(found.stdout)["total"]["turns"] == 1


def append_some(url: str, name: str) -> None:
    with closing(open_ledger(url, journals=(), patience=30)) as ledger:
        for number in range(20):
            ledger.append([row(id=f"{name}{number}")])
