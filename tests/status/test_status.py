"""The status line: whose spend since when, which budget is the tightest, and that a kept answer is true."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from acp_proxy.config import Config, load
from acp_proxy.core.budget import Budget
from acp_proxy.core.scope import Scope, Subject
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.report import Line
from acp_proxy.status import cache, formats
from acp_proxy.status.overview import FIELDS, Status, status
from acp_proxy.text import times
from harness.rows import BOB, MINUTE, NOON, line, row
from tests.core.accounts import budget
from tests.ledger.warned import Warnings
from tests.midday import midday

ROOT = Path(__file__).parents[2]

SLOW = {
    *("argparse", "asyncio", "csv", "dataclasses", "difflib", "hashlib", "inspect", "logging", "orjson", "shutil"),
    *("socket", "subprocess", "zoneinfo", "binascii", "heapq", "acp_proxy.cli", "acp_proxy.catalog"),
    *("acp_proxy.ledger.budgets", "acp_proxy.system.project", "acp_proxy.report.periods"),
}
HOUR = 60 * MINUTE
DAY = 24 * HOUR
ME = Subject("default", "alice", "core", "web", "laptop", "")
NOTHING_SPENT = Status("alice", times.UTC_ZONE, NOON, Line("total"), Line("total"), Line("total"), (), None)
SPENT = line("claude-sonnet-5", "1.25", input=1000, output=200)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[BudgetLedger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    yield ledger
    ledger.close()


def found(ledger: BudgetLedger, *rows: Row, budgets: tuple[Budget, ...] = (), zone: str = "UTC") -> Status:
    ledger.append(rows)
    config = _with(budgets)
    return status(ledger, config, ME, times.zone(zone), NOON + HOUR)


def _with(budgets: tuple[Budget, ...]) -> Config:
    return structs.replace(load({}, {"HOME": "/nonexistent"}), budgets=budgets)


def test_rows_dated_after_today_are_no_spend_of_today(ledger: BudgetLedger) -> None:
    midnight = NOON + 12 * HOUR
    answer = found(ledger, row(SPENT), row(SPENT, at=midnight - 1), row(SPENT, at=midnight), row(SPENT, at=NOON * 2))
    assert [each.turns for each in (answer.today, answer.week, answer.month)] == [2, 2, 2]


def test_today_this_week_and_this_month_begin_at_local_midnights(ledger: BudgetLedger) -> None:
    days = (0, 5, 6, 40)  # of a Saturday
    shown = found(ledger, *(row(SPENT, at=NOON - days_ago * DAY) for days_ago in days))
    assert formats.as_text(shown, "{today} {week} {month}") == "$1.25 $2.50 $3.75\n"


@pytest.mark.parametrize(
    ("zone", "now", "day"),
    [
        ("Europe/Berlin", "2026-03-29T12:00:00+02:00", "2026-03-28T23:00:00Z"),
        ("America/New_York", "2026-11-01T12:00:00-05:00", "2026-11-01T04:00:00Z"),
        ("Asia/Kathmandu", "2026-11-21T00:10:00+05:45", "2026-11-20T18:15:00Z"),
        ("America/Havana", "2025-11-02T00:30:00-05:00", "2025-11-02T04:00:00Z"),  # has two midnights
        ("Africa/Cairo", "2026-04-24T12:00:00+03:00", "2026-04-23T22:00:00Z"),  # has none
    ],
)
def test_a_day_begins_at_local_midnight_also_when_clocks_change(zone: str, now: str, day: str) -> None:
    at, begun = (times.parse(text, times.UTC_ZONE, 0) for text in (now, day))
    local = times.zone(zone)
    assert times.begin_of("today", local, at) == begun
    assert times.begin_of("today", local, times.day_after(at, local)) == times.day_after(at, local)


def test_days_of_the_c_librarys_zone_begin_when_those_of_the_zone_database_do() -> None:
    code = """
from acp_proxy.text import times
ours, theirs, hour = times.Zone("Berlin", None), times.zone("Europe/Berlin"), 3600 * times.SECOND
spring, autumn = (times.parse(day, theirs, 0) for day in ("2026-03-28", "2026-10-24"))
hours = [day + number * hour for day in (spring, autumn) for number in range(75)]
def known(zone, at):
    return [*(times.begin_of(period, zone, at) for period in ("today", "week", "month")), times.day_after(at, zone)]
print(all(known(ours, at) == known(theirs, at) for at in hours))
"""
    environ = {**os.environ, "TZ": "Europe/Berlin"}
    assert subprocess.check_output([sys.executable, "-c", code], env=environ, text=True) == "True\n"


def test_others_spend_is_not_mine(ledger: BudgetLedger) -> None:
    shown = found(ledger, row(SPENT, origin=BOB), row(SPENT))
    assert formats.as_line(shown) == "$1.25 today · last turn $1.25\n"


def test_the_budget_shown_is_the_one_of_which_the_least_part_is_left(ledger: BudgetLedger) -> None:
    budgets = (
        budget("100 USD", name="monthly", window="month"),
        budget("5 USD", name="daily"),
        budget("1 USD", name="of bob", scope=Scope(user=("bob",))),
        budget("1 USD", name="each session", window="session"),
    )
    shown = found(ledger, row(SPENT), budgets=budgets)
    assert [standing.account.budget.name for standing in shown.standings] == ["daily", "monthly"]
    assert formats.as_line(shown) == "$1.25 today · $3.75 left of daily · last turn $1.25\n"
    assert formats.as_text(shown, "{used}% of {limit}, {resets}") == "25% of $5.00, 22 Nov 00:00 UTC\n"


def test_a_budget_that_stops_nobody_and_tells_nothing_is_not_in_the_line(ledger: BudgetLedger) -> None:
    shadow = budget("1 USD", name="tried", mode="shadow")
    shown = found(ledger, row(SPENT), budgets=(shadow, budget("5 USD", name="daily")))
    assert formats.as_line(shown) == "$1.25 today · $3.75 left of daily · last turn $1.25\n"
    assert [each["name"] for each in json.loads(formats.as_json(shown))["budgets"]] == ["daily", "tried"]
    alone = found(ledger, budgets=(shadow,))
    assert formats.as_line(alone) == "$1.25 today · last turn $1.25\n"
    assert formats.as_text(alone, "{left} {budget}") == "- -\n"


@pytest.mark.parametrize("limit", ["1 USD", "1.259 USD"], ids=["nothing is left", "less than a prompt needs"])
def test_a_budget_that_refuses_comes_before_a_fuller_one_that_only_warns(ledger: BudgetLedger, limit: str) -> None:
    warns, refuses = budget("0.10 USD", name="hint", mode="warn"), budget(limit, name="daily")
    shown = found(ledger, row(SPENT), budgets=(warns, refuses, budget("5 USD", name="monthly")))
    assert [each["name"] for each in json.loads(formats.as_json(shown))["budgets"]] == ["daily", "hint", "monthly"]


def test_what_was_spent_beyond_a_limit_is_over_it(ledger: BudgetLedger) -> None:
    shown = found(ledger, row(SPENT), budgets=(budget("1 USD", name="daily"),))
    assert formats.as_line(shown) == "$1.25 today · $0.25 over daily · last turn $1.25\n"
    assert formats.as_text(shown, "{left}") == "-$0.25\n"


def test_of_a_budget_per_user_mine_is_shown(ledger: BudgetLedger) -> None:
    budgets = (budget("5 USD", name="each", per="user"),)
    shown = found(ledger, row(SPENT, origin=BOB), row(SPENT, origin=BOB), row(SPENT), budgets=budgets)
    assert [(standing.account.value, standing.percent) for standing in shown.standings] == [("alice", 25)]


def test_an_empty_ledger_says_what_it_knows(ledger: BudgetLedger) -> None:
    shown = found(ledger)
    assert formats.as_line(shown) == "$0.00 today\n"
    assert formats.as_text(shown, "{today} {left} {last} {context}") == "$0.00 - - -\n"
    assert json.loads(formats.as_json(shown))["last_turn"] is None


def test_every_field_can_be_named_and_no_other(ledger: BudgetLedger) -> None:
    shown = found(ledger, row(SPENT), budgets=(budget("5 USD", name="daily"),))
    every = formats.as_text(shown, "|".join(f"{{{name}}}" for name in FIELDS))
    assert "{" not in every
    assert formats.wrong_with(every) is None
    assert (formats.wrong_with("{tody}") or "").startswith("unknown field {tody}; there are today")
    assert formats.wrong_with("{today} caf\udce9") == "expected text in UTF-8"


@pytest.mark.parametrize("form", ["{today", "{today {left}", "{left} of {limit, {resets}"])
def test_a_field_that_is_not_closed_is_no_text(form: str) -> None:
    assert (formats.wrong_with(form) or "").endswith(("write {today}", "write {limit}"))


@pytest.mark.parametrize(
    "form",
    [
        '{"text": "{today}", "class": "spent"}',
        '{"text": "spent", "more": {"left": "{left}", "class": []}, "none": {}}',
        '{\n  "text": "spent"\n}',
        "{ {today} }",
        "${{{left}",
        "{",
        "}",
        "",
    ],
)
def test_braces_that_begin_no_field_are_text(ledger: BudgetLedger, form: str) -> None:
    assert formats.wrong_with(form) is None
    said = formats.as_text(found(ledger), form)
    assert said == form.replace("{today}", "$0.00").replace("{left}", "-") + "\n"


@given(st.text("{}a ") | st.lists(st.sampled_from(("{today}", "{left}", "{", "}", "x"))).map("".join))
def test_a_format_is_filled_in_from_left_to_right(form: str) -> None:
    names = re.findall(r"\{([^{}]*)\}", form)
    wrong = next((name for name in names if name not in FIELDS and name[:1].isalpha()), None)
    assert (formats.wrong_with(form) or "").partition(";")[0] == (
        "" if wrong is None else f"unknown field {{{' '.join(wrong.split())}}}"
    )
    if wrong is None:
        told = formats.as_text(NOTHING_SPENT, form)
        assert (
            told == re.sub(r"\{([a-z_]+)\}", lambda field: formats.as_text(NOTHING_SPENT, field[0])[:-1], form) + "\n"
        )


def test_the_last_turn_is_found_however_long_ago_it_was(ledger: BudgetLedger) -> None:
    shown = found(ledger, row(SPENT, at=NOON - 300 * DAY))
    assert shown.last is not None
    assert shown.today.turns == 0


def test_tokens_that_nobody_told_are_not_nothing(ledger: BudgetLedger) -> None:
    shown = found(ledger, row(line("opus", None, input=0), usage_source="none", cost_source="unknown"))
    assert formats.as_text(shown, "{last_tokens} {last}") == "- ?\n"


def test_names_that_would_drive_a_terminal_are_shown_as_text(ledger: BudgetLedger) -> None:
    hostile = row(replace(SPENT, model="\x1b]0;owned\x07big\x1b[31m-model"))
    assert formats.as_text(found(ledger, hostile), "{model}") == "big-model\n"


# The command: in a home of its own, twice, with something changed in between.


class Home:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}/.local/state/acp-proxy/ledger.db"
        ours = {"HOME": str(path), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        self.environ = ours | {"TZ": midday(), "USER": "alice"}

    def run(self, *arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-X", "importtime", "-m", "acp_proxy", "status", *arguments]
        return subprocess.run(
            command, env={**self.environ, **(environ or {})}, cwd=self.path, capture_output=True, text=True, check=False
        )

    def imports(self, *arguments: str) -> set[str]:
        """In UTC, for which `zoneinfo` is not needed."""
        done = self.run(*arguments, environ={"TZ": "UTC"})
        return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}

    def says(self, *arguments: str) -> tuple[str, bool]:
        """The answer, and whether it was a kept one: the ledger's code was not imported."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout, "acp_proxy.ledger" not in done.stderr

    def spend(self) -> None:
        ledger = open_ledger(self.url, journals=())
        ledger.append([row(SPENT, at=time.time_ns() - MINUTE)])
        ledger.close()

    def configure(self, text: str) -> None:
        file = self.path / ".config/acp-proxy/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.spend()
    return home


DAILY = '[[budget]]\nname = "daily"\nwindow = "total"\nlimit = { amount = "5", currency = "USD" }\n'


def test_a_second_question_is_answered_without_the_ledger(home: Home) -> None:
    first, kept = home.says()
    assert not kept
    assert home.says() == (first, True)
    assert home.says("--format", "{last}") == ("$1.25\n", False)  # another question


def test_a_new_answer_is_made_without_what_takes_long_to_import(home: Home) -> None:
    home.configure(DAILY)
    loaded = home.imports("--format", "{today} {left} {resets}")
    assert "acp_proxy.ledger.sqlite.reader" in loaded
    assert loaded & SLOW == set()


def test_a_row_a_budget_or_a_grant_makes_a_new_answer(home: Home) -> None:
    ask = ("--format", "{last_tokens} {left}")
    assert home.says(*ask) == ("1,200 -\n", False)
    home.configure(DAILY)
    assert home.says(*ask) == ("1,200 $3.75\n", False)
    assert home.says(*ask) == ("1,200 $3.75\n", True)
    home.spend()
    assert home.says(*ask) == ("1,200 $2.50\n", False)
    granted = ["budget", "grant", "daily", "--amount", "10", "--for", "2h", "--reason", "release"]
    subprocess.run([sys.executable, "-m", "acp_proxy", *granted], env=home.environ, check=True, capture_output=True)
    assert home.says(*ask) == ("1,200 $12.50\n", False)


def test_a_configuration_that_changed_changes_the_answer(home: Home) -> None:
    home.configure(DAILY)
    home.spend()
    assert home.says("--format", "{left}") == ("$2.50\n", False)
    home.configure(DAILY.replace('"5"', '"6"'))  # as many bytes
    assert home.says("--format", "{left}") == ("$3.50\n", False)


def test_an_answer_is_the_same_however_it_came_about(home: Home) -> None:
    home.configure(
        '\ufeff[identity]\r\nteam = "kärnten"\r\n[[budget]]\r\nname = "ünd so"\r\nper = "team"\r\nwindow = "month"\r\n'
        'timezone = "Europe/Vienna"\r\nscope = { user = ["al*"] }\r\nlimit = { tokens = 5_000 }\r\n'
    )
    form = "{today} {budget} {left} {limit} {resets}"
    parsed, kept, anew = (home.says("--format", text) for text in (form, form, f"{form} "))
    assert parsed[0].startswith("$1.25 ünd so 5,000 tokens 5,000 01 ")
    assert kept == (parsed[0], True)
    assert anew == (parsed[0].removesuffix("\n") + " \n", False)


def test_another_user_gets_another_answer(home: Home) -> None:
    assert home.says("--format", "{today}")[0] == "$1.25\n"
    assert home.run("--format", "{today}", environ={"USER": "bob"}).stdout == "$0.00\n"
    home.configure('[identity]\nuser = "bob"\n')
    assert home.says("--format", "{today}") == ("$0.00\n", False)


def test_a_project_is_looked_for_where_a_budget_is_about_one(home: Home) -> None:
    (home.path / ".git").mkdir()
    (home.path / ".git/config").write_text('[remote "origin"]\n\turl = https://host/team/shop.git\n')
    home.configure(DAILY)
    assert "acp_proxy.system.project" not in home.imports("--format", "{budget}")
    home.configure(DAILY.replace('"daily"', '"shop"\nscope = { project = "shop" }'))
    assert home.says("--format", "{budget}") == ("shop\n", False)
    home.configure(DAILY.replace('"daily"', '"other"\nscope = { project = "other" }'))
    assert home.says("--format", "{budget}") == ("-\n", False)


def test_a_row_that_a_killed_proxy_left_is_in_the_answer(home: Home) -> None:
    with closing(open_journal([home.path / ".local/state/acp-proxy/journal"], home.url, Warnings())) as journal:
        journal.write(row(SPENT, at=time.time_ns() - MINUTE))
    assert home.says("--format", "{today} {last}") == ("$2.50 $1.25\n", False)


def test_a_row_that_comes_while_an_answer_is_made_is_in_the_next_one(home: Home) -> None:
    watched = cache.marked([str(home.path / ".local/state/acp-proxy/ledger.db")])
    home.spend()
    cache.keep(["status"], home.environ, "without it\n", watched, _soon())
    assert cache.kept(["status"], home.environ) is None


def test_a_kept_answer_is_for_its_environment_and_its_time_only(home: Home) -> None:
    asked, environ = ["status"], home.environ
    cache.keep(asked, environ, "kept\n", [], 0)
    assert cache.kept(asked, environ) is None  # its time is over
    cache.keep(asked, environ, "kept\n", [], _soon())
    assert cache.kept(asked, environ) == "kept\n"
    assert cache.kept(asked, {**environ, "ACP_PROXY_LEDGER__URL": "sqlite:////x"}) is None
    assert cache.kept(["status", "--format", "json"], environ) is None


def test_what_a_killed_process_of_the_same_id_left_is_not_in_the_way(home: Home) -> None:
    """In a container it mostly is the same one."""
    file = Path(cache.place("asked", home.environ))
    file.parent.mkdir(parents=True)
    file.with_name(f"{file.name}.{os.getpid()}").write_text("half of")
    cache.write(str(file), "whole")
    assert file.read_text() == "whole"


def test_what_is_kept_holds_no_password_and_no_directory_that_it_was_asked_in(home: Home) -> None:
    asked, environ = ["status", "--ledger", "postgresql://u:hunter2@db/x"], {**home.environ, "ACP_PROXY_X": "hunter2"}
    cache.keep(asked, environ, "kept\n", [], _soon())
    assert cache.kept(asked, environ) == "kept\n"
    (file,) = (home.path / ".local/state/acp-proxy/status").iterdir()
    assert [word in file.read_text() for word in ("kept", "hunter2", str(Path.cwd()))] == [True, False, False]


def test_answers_to_ever_new_questions_do_not_pile_up(home: Home) -> None:
    for number in range(600):
        cache.keep([str(number)], home.environ, "kept\n", [], _soon())
    assert len(list((home.path / ".local/state/acp-proxy/status").iterdir())) <= 500
    assert cache.kept(["599"], home.environ) == "kept\n"


def test_a_damaged_kept_answer_is_made_anew(home: Home) -> None:
    first, _ = home.says()
    (file,) = (home.path / ".local/state/acp-proxy/status").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    sound = file.read_bytes()
    for damage in (b"", b"\xff\x00\x00", sound[:-3] + b"999", sound.replace(b"\0whole", b"\0half\0whole")):
        file.write_bytes(damage)
        assert home.says() == (first, False)


def test_a_state_directory_that_cannot_be_written_is_no_trouble(home: Home) -> None:
    (home.path / ".local/state/acp-proxy/status").write_text("in the way")
    assert home.says()[0] == home.says()[0]


@pytest.mark.parametrize("asked", [("--format", "json"), ("--json",)])
def test_json_has_all_of_it(home: Home, asked: tuple[str, ...]) -> None:
    home.configure(DAILY)
    said: dict[str, Any] = json.loads(home.says(*asked)[0])
    assert said["today"]["cost"] == {"USD": "1.25"}
    assert [(budget["name"], budget["left"]) for budget in said["budgets"]] == [("daily", "3.75")]
    assert (said["last_turn"]["model"], said["last_turn"]["cost"]) == ("claude-sonnet-5", {"USD": "1.25"})


def test_a_mistake_is_one_line_and_status_2(home: Home) -> None:
    done = home.run("--format", "{spent}")
    complaints = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert done.returncode == 2
    assert [line.partition(";")[0] for line in complaints] == ["acp-proxy: --format: unknown field {spent}"]
    assert home.run("--json", "--format", "{today}").returncode == 2


def _soon() -> int:
    return time.time_ns() + 60 * 10**9
