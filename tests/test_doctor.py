"""`acp-proxy doctor`: what it finds on machines in various states."""

from __future__ import annotations

import io
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy import doctor
from acp_proxy.catalog import Catalog
from acp_proxy.config import load
from acp_proxy.config.digest import FORM, digest
from acp_proxy.core.entry import Entry, UsageLine
from acp_proxy.core.events import Event, TurnMetered
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import DAY
from acp_proxy.interceptor import Interceptor
from acp_proxy.ledger import Row, open_ledger, places
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.settings import Settings
from acp_proxy.text.figures import clean
from harness.rows import ALICE, BOB, MINUTE, NOON, amended, line, row
from tests.ends import Ends, answer, prompt, request
from tests.ledger.warned import Warnings
from tests.packages import install


class Patient:
    """A machine of its own, and what the doctor says of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"HOME": str(root), "USER": "alice"}
        self.state = root / ".local/state/acp-proxy"
        self.url = f"sqlite:///{self.state}/ledger.db"
        self.admin_file = root / "admin.toml"
        self.clock: Callable[[], int] = time.time_ns

    def configure(self, text: str) -> Path:
        path = self.root / ".config/acp-proxy/config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def examined(self, **options: str) -> tuple[int, list[str]]:
        out = io.StringIO()
        status = doctor.main(options, self.environ, out, admin_file=self.admin_file, clock=self.clock)
        return status, out.getvalue().splitlines()

    def lines(self, about: str, **options: str) -> list[str]:
        return [line for line in self.examined(**options)[1] if line[5:].startswith(about)]


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path)


def days_after_the_catalog(days: int) -> int:
    """Unix ns of a noon."""
    day = Catalog().date + timedelta(days=days)
    return int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp()) * 10**9


def test_a_new_machine_is_in_order(patient: Patient) -> None:
    patient.clock = lambda: days_after_the_catalog(120)
    status, lines = patient.examined()
    assert status == 0
    assert [line.partition(":")[0] for line in lines] == ["ok   config", "ok   ledger", "ok   journal", "ok   catalog"]
    assert lines[0] == "ok   config: no file, all defaults"
    assert str(patient.state / "ledger.db") in lines[1]
    assert lines[2] == f"ok   journal: {patient.state}/journal, 0 in use"


def test_prices_of_more_than_four_months_ago_are_called_old(patient: Patient) -> None:
    patient.clock = lambda: days_after_the_catalog(121)
    status, lines = patient.examined()
    assert status == 0
    assert lines[-1].startswith("warn catalog: ")
    assert lines[-1].endswith("a newer acp-proxy has newer ones")


def test_the_files_that_were_read_are_named(patient: Patient) -> None:
    path = patient.configure("share_titles = false\n")
    assert patient.lines("config") == [f"ok   config: {path}"]


def test_a_mistake_in_the_configuration_is_a_failure_and_the_rest_is_still_examined(patient: Patient) -> None:
    path = patient.configure("[run]\nsummary = 1\n")
    status, lines = patient.examined()
    assert status == 1
    assert lines[0] == f"FAIL config: {path}:2: run.summary: expected true or false, not a number"
    assert lines[1][5:].startswith("catalog: ")


def test_what_the_administrator_overrules_is_said(patient: Patient) -> None:
    patient.admin_file.write_text('[identity]\nteam = "core"\n')
    patient.configure('[identity]\nteam = "mine"\n')
    assert patient.lines("config")[1] == "warn config: identity.team is set, but the administrator's file decides it"


def test_a_ledger_that_cannot_be_opened_is_a_failure(patient: Patient) -> None:
    (patient.root / "file").write_text("")
    status, lines = patient.examined(ledger=f"sqlite:///{patient.root}/file/ledger.db")
    assert status == 1
    assert [line for line in lines if line.startswith("FAIL ledger: ")]


def test_a_ledger_whose_name_may_be_mistyped_is_not_made(patient: Patient) -> None:
    patient.configure(BUDGET)
    for _ in range(2):
        status, lines = patient.examined(ledger=f"sqlite:///{patient.root}/typo.db")
        assert status == 0
        assert [line.partition(":")[0] for line in lines] == [
            *("ok   config", "warn ledger", "ok   journal", "ok   budget", "ok   catalog")
        ]
        assert lines[1].endswith(f"{patient.root}/typo.db: expected one that `acp-proxy run` has made")
    assert not (patient.root / "typo.db").exists()
    out = io.StringIO()
    options = {"ledger": f"sqlite:///{patient.root}/typo.db"}
    assert doctor.main(options, patient.environ, out, admin_file=patient.admin_file, rebuild=True) == 1
    assert "\nFAIL ledger: " in out.getvalue()


def test_each_agent_of_the_ledger_is_told_with_how_it_counts(patient: Patient) -> None:
    with_detail = replace(row().entry, detail="unknown agent: looked like a session's counter")
    known = replace(ALICE, agent="gemini-cli", agent_version="0.61.0")
    unknown = replace(ALICE, agent="new-agent\x1b[2J", agent_version=None)
    ledger = open_ledger(patient.url, journals=())
    ledger.append([row(origin=known), replace(row(origin=unknown), entry=with_detail)])
    ledger.close()
    status, _ = patient.examined()
    first, second = patient.lines("agent")
    assert status == 0
    assert first.startswith("ok   agent: gemini-cli 0.61.0: usage per turn; never reported: thinking; the router")
    assert second.startswith("warn agent: new-agent (no version): not in the table")
    assert second.endswith(
        '(unknown agent: looked like a session\'s counter); [agents."new-agent\\u001b[2J"] overrides this'
    )


def test_turns_that_two_acp_proxies_of_one_chain_have_booked_are_counted(patient: Patient) -> None:
    patient.clock = lambda: NOON + 10 * MINUTE
    outer = [row(line(input=n), at=NOON + n * MINUTE) for n in (1, 2)]
    inner = [amended(each, id=f"{n}", started_at=each.entry.started_at + 1) for n, each in enumerate(outer)]
    with closing(open_ledger(patient.url)) as ledger:
        ledger.append([*inner, *outer])
    assert patient.lines("chain") == [
        "warn chain: 2 turns of the last day booked twice: two acp-proxies in one chain; remove one"
    ]


def test_turns_that_used_the_same_one_after_the_other_or_elsewhere_are_not_taken_for_one(patient: Patient) -> None:
    patient.clock = lambda: NOON + 10 * MINUTE
    elsewhere = replace(ALICE, host="desktop")
    nothing = UsageLine("opus", Usage(), None, None)
    rows = [row(), row(at=NOON + MINUTE), row(session="s2"), row(origin=elsewhere), row(nothing), row(nothing)]
    rows += [row(origin=BOB), row(kind="subagent"), row(at=NOON - 2 * DAY), row(at=NOON - 2 * DAY)]
    with closing(open_ledger(patient.url)) as ledger:
        ledger.append(rows)
    assert patient.lines("chain") == []


def test_an_agent_that_once_told_no_version_is_told_with_those_that_it_told(patient: Patient) -> None:
    agents = [replace(ALICE, agent="gemini-cli", agent_version=version) for version in ("2", None, "10")]
    with closing(open_ledger(patient.url, journals=())) as ledger:
        ledger.append([row(origin=agent, session=str(number)) for number, agent in enumerate(agents)])
    assert [line.split(": ")[1] for line in patient.lines("agent")] == [
        *("gemini-cli 10", "gemini-cli 2", "gemini-cli (no version)")
    ]


def test_an_unknown_agent_is_judged_by_the_last_turn_of_which_it_told_the_tokens(patient: Patient) -> None:
    silent = row(line(None, None, input=0), at=NOON + 2 * MINUTE, usage_source="none", detail="nothing reported")
    empty = row(line(None, None, input=0), at=NOON + 4 * MINUTE)
    assert said_of(patient, row(at=NOON), silent, empty).startswith("ok   agent: new 1: not in the table by its name")


def test_why_an_unknown_agent_is_counted_as_it_is_was_said_with_the_last_turn_that_says_it(patient: Patient) -> None:
    rows = [
        row(line(None, None, input=0), at=NOON + number * MINUTE, usage_source="none", detail=why)
        for number, why in enumerate(["first reason", "last reason", ""])
    ]
    said = said_of(patient, *rows)
    assert said.startswith("warn agent: new 1: not in the table")
    assert said.endswith('(last reason); [agents."new"] overrides this')


def test_an_unknown_agent_of_which_nothing_is_known_is_a_warning_without_a_reason(patient: Patient) -> None:
    said = said_of(patient, row(line(None, None, input=0), usage_source="none"))
    assert said.startswith("warn agent: new 1: not in the table")
    assert said.endswith('; [agents."new"] overrides this')
    assert "(" not in said.partition("; ")[0]


def said_of(patient: Patient, *rows: Row) -> str:
    """The line about an agent that nobody has described, and whose turns these are."""
    with closing(open_ledger(patient.url, journals=())) as ledger:
        ledger.append([replace(each, origin=replace(ALICE, agent="new", agent_version="1")) for each in rows])
    (said,) = patient.lines("agent")
    return said


@pytest.mark.parametrize(("title", "verdict"), [("Pydantic ACP", "ok"), ("My own", "warn")])
def test_an_agent_that_is_known_by_its_title_is_not_called_unknown(patient: Patient, title: str, verdict: str) -> None:
    ends = Ends([metered := Metered()])
    ends.client_says(request(0, "initialize", protocolVersion=1))
    ends.agent_says(answer(0, protocolVersion=1, agentInfo={"name": "helper", "version": "1", "title": title}))
    ends.client_says(prompt(2))
    ends.agent_says(answer(2, stopReason="end_turn", usage={"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}))
    ledger = open_ledger(patient.url, journals=())
    origin = replace(ALICE, agent="helper", agent_version="1")
    ledger.append([Row(origin, entry) for entry in metered.entries])
    ledger.close()
    (said,) = patient.lines("agent")
    assert said.startswith(f"{verdict:<5}agent: helper 1: not in the table")
    assert ("recognized by other fields" in said, "overrides this" in said) == (verdict == "ok", verdict == "warn")


class Metered(Interceptor):
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def on_event(self, event: Event) -> tuple[()]:
        if isinstance(event, TurnMetered):
            self.entries.append(event.entry)
        return ()


@pytest.mark.parametrize("name", ["new", 'my "own" agent', "back\\slash", "名前 ü", "a]b\x1b[2J"])
def test_the_table_that_is_said_to_decide_how_an_agent_counts_can_be_copied(patient: Patient, name: str) -> None:
    with closing(open_ledger(patient.url, journals=())) as ledger:
        ledger.append([row(line(None, None, input=0), origin=replace(ALICE, agent=name), usage_source="none")])
    (warning,) = patient.lines("agent")
    table = warning.removesuffix(" overrides this").rpartition("; ")[2]
    patient.configure(f'{table}\nscope = "session"\n')
    (said,) = patient.lines("agent")
    assert said.startswith(f"ok   agent: {clean(name)} ")


def test_the_configuration_makes_an_agent_known(patient: Patient) -> None:
    ledger = open_ledger(patient.url, journals=())
    ledger.append([row(origin=replace(ALICE, agent="my-agent"))])
    ledger.close()
    patient.configure('[agents."my-agent"]\nscope = "session"\n')
    assert [line[:20] for line in patient.lines("agent")] == ["ok   agent: my-agent"]


BUDGET = """
[[budget]]
name = "daily"
window = "day"
per = "user"
timezone = "Europe/Berlin"
limit = { amount = "30", currency = "USD" }
"""


def test_a_budget_in_order_is_told_in_words(patient: Patient) -> None:
    patient.configure(BUDGET)
    assert patient.lines("budget") == ['ok   budget: "daily" (user): $30.00, day for each user, Europe/Berlin, enforce']


def test_a_budget_whose_weeks_do_not_begin_on_monday_is_told_so(patient: Patient) -> None:
    patient.configure(BUDGET.replace('"day"', '"week"\nweek_start = "sunday"'))
    assert patient.lines("budget") == [
        'ok   budget: "daily" (user): $30.00, week from Sunday for each user, Europe/Berlin, enforce'
    ]


def test_a_budget_of_tokens_is_told_in_words_and_is_in_order_beside_costs_in_money(patient: Patient) -> None:
    with closing(open_ledger(patient.url, journals=())) as ledger:
        ledger.append([row()])
    limit = "limit = { tokens = 1_500_000 }"
    patient.configure(f'[[budget]]\nname = "all"\nwindow = "month"\ntimezone = "UTC"\n{limit}\n')
    assert patient.lines("budget") == ['ok   budget: "all" (user): 1,500,000 tokens, month, UTC, enforce']


def test_a_budget_that_admits_one_least_prompt_is_in_order(patient: Patient) -> None:
    patient.configure(BUDGET.replace('"30"', '"0.01"'))
    assert patient.lines("budget") == ['ok   budget: "daily" (user): $0.01, day for each user, Europe/Berlin, enforce']


@pytest.mark.parametrize(
    ("change", "trouble"),
    [
        (('"30"', '"0"'), "a limit of 0 refuses everything"),
        (('"30"', '"0.005"'), "below $0.01, the least that a prompt holds: it refuses everything"),
        (('"USD"', '"EUR"'), "it counts EUR, and the ledger has only USD"),
        (("per", 'scope = { team = "cor", model = "op*" }\nper'), "no team in the ledger is cor"),
    ],
)
def test_a_budget_that_counts_nothing_or_refuses_everything_is_a_warning(
    patient: Patient, change: tuple[str, str], trouble: str
) -> None:
    others = replace(ALICE, organisation="another", team="cor")
    ledger = open_ledger(patient.url, journals=())
    ledger.append([row(), row(line("opus", "1", "EUR"), origin=others)])
    ledger.close()
    patient.configure(BUDGET.replace(*change))
    status, _ = patient.examined()
    (said,) = patient.lines("budget")
    assert (status, said[:4]) == (0, "warn")
    assert said.endswith(trouble)


def test_a_budget_with_a_rate_for_what_the_ledger_has_is_in_order(patient: Patient) -> None:
    with closing(open_ledger(patient.url, journals=())) as ledger:
        ledger.append([row()])
    patient.configure(BUDGET.replace('"USD"', '"EUR"') + 'rates = { USD = "0.92" }\n')
    assert patient.lines("budget") == [
        'ok   budget: "daily" (user): €30.00 (1 USD = 0.92), day for each user, Europe/Berlin, enforce'
    ]


@pytest.mark.parametrize("mode", ["shadow", "warn"])
@pytest.mark.parametrize("limit", ["0", "0.005"])
def test_a_budget_that_refuses_nothing_may_have_any_limit(patient: Patient, limit: str, mode: str) -> None:
    patient.configure(BUDGET.replace("30", limit) + f'mode = "{mode}"\n')
    (line,) = patient.lines("budget")
    assert (line[:4], line.rpartition(", ")[2]) == ("ok  ", mode)


def test_an_administrators_budget_that_users_can_get_around_is_a_warning(patient: Patient) -> None:
    patient.admin_file.write_text(BUDGET)
    (line,) = patient.lines("budget")
    assert line.endswith(
        "identity.organisation and identity.user and ledger.url are not set in the administrator's file, "
        "so users can choose"
    )
    patient.admin_file.write_text(BUDGET.replace("per =", 'scope = { team = "core" }\nper ='))
    assert "identity.organisation and identity.team and identity.user and ledger.url" in patient.lines("budget")[0]
    patient.admin_file.write_text(f'{BUDGET}mode = "warn"\n')
    assert patient.lines("budget")[0].startswith("ok   budget")  # who gets around it gets around nothing
    identity = '[identity]\norganisation = "o"\nuser = "alice"\n'
    patient.admin_file.write_text(f'{identity}[ledger]\nurl = "{patient.url}"\n{BUDGET}')
    assert patient.lines("budget")[0].startswith("ok   budget")


def test_journals_of_the_dead_are_taken_over_and_those_of_the_living_are_left(patient: Patient) -> None:
    directory = patient.state / "journal"
    living = open_journal([directory], patient.url, Warnings())
    dead = open_journal([directory], patient.url, Warnings())
    living.write(row())
    dead.write(row())
    dead.close()
    assert patient.lines("journal") == [f"ok   journal: {directory}, 1 in use"]
    assert " 1 row, " in patient.lines("ledger")[0]
    living.close()


def test_rows_that_wait_for_another_ledger_are_pointed_at(patient: Patient) -> None:
    directory = patient.state / "journal"
    journal = open_journal([directory], "sqlite:////elsewhere/ledger.db", Warnings())
    journal.write(row())
    journal.write_open(row())  # of a turn that was killed
    path = journal.path
    journal.close()
    assert patient.lines("journal")[1] == (
        f"warn journal: {path} has 2 rows for sqlite:////elsewhere/ledger.db: "
        "`acp-proxy doctor --ledger URL` takes them over"
    )


def test_a_journal_of_the_dead_that_owes_no_rows_is_no_trouble(patient: Patient) -> None:
    directory = patient.state / "journal"
    journal = open_journal([directory], "sqlite:////elsewhere/ledger.db", Warnings())
    assert journal.path
    left = journal.path.read_bytes()  # by a proxy that was killed before its first turn
    journal.close()
    journal.path.write_bytes(left)
    assert patient.lines("journal") == [f"ok   journal: {directory}, 0 in use"]


def test_a_file_that_is_no_journal_is_pointed_at(patient: Patient) -> None:
    strange = patient.state / "journal/x.journal"
    strange.parent.mkdir(parents=True)
    strange.write_bytes(b"something else")
    assert f"warn journal: {strange} cannot be read by this version" in patient.lines("journal")


def test_no_place_for_a_journal_is_a_warning(patient: Patient) -> None:
    patient.state.mkdir(parents=True)
    (patient.state / "journal").write_text("a file stands in the way")
    assert patient.lines("journal")[0].startswith("warn journal: no local, writable directory")


def test_a_link_to_another_machines_file_system_is_no_place_for_a_journal_either(
    patient: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = tmp_path / "far"
    far.mkdir()
    patient.state.mkdir(parents=True)
    (patient.state / "journal").symlink_to(far)
    monkeypatch.setattr(places, "_mounts", lambda: f"disk / ext4 rw 0 0\nserver:/ {far.resolve()} nfs4 rw 0 0\n")
    warnings = Warnings()
    assert open_journal([patient.state / "journal"], patient.url, warnings).path is None
    assert "on nfs4, not known as a local file system" in str(warnings.told)
    assert patient.lines("journal")[0].startswith("warn journal: no local, writable directory")


def test_a_place_that_cannot_even_be_looked_at_is_the_same_warning(patient: Patient) -> None:
    ledger = f"sqlite:///{patient.root}/ledger.db"
    open_ledger(ledger, journals=()).close()
    patient.environ["XDG_STATE_HOME"] = f"{patient.root}/{'x' * 300}"
    status, lines = patient.examined(ledger=ledger)
    assert (status, [line.partition(":")[0] for line in lines][1:3]) == (0, ["ok   ledger", "warn journal"])
    assert "no local, writable directory" in lines[2]


class TestMachines:
    """Others that write to the same ledger."""

    @pytest.fixture
    def fleet(self, patient: Patient) -> Patient:
        """The patient has the administrator's file that most have, and so has `tower`."""
        patient.admin_file.write_text(BUDGET)
        self.note(patient, "tower", BUDGET)
        return patient

    def note(self, patient: Patient, host: str, admin: str | None, *, days_ago: int = 0, user: str = "bob") -> None:
        """A machine with this file, as it was seen last."""
        theirs = patient.root / f"{host}.toml"
        if admin is not None:
            theirs.write_text(admin)
        config = load({}, patient.environ, admin_file=theirs)
        seen_at = time.time_ns() - days_ago * DAY
        with closing(open_ledger(patient.url, journals=())) as ledger:
            said = digest(config, "admin")
            ledger.note_settings(Settings("default", host, user, "admin", said, FORM, seen_at))

    def test_one_that_judges_alike_is_counted(self, fleet: Patient) -> None:
        self.note(fleet, "laptop", f"# the same\n{BUDGET}")
        assert fleet.lines("machine") == [
            "ok   machine: the administrator's file has the same meaning on 2 other machines"
        ]

    def test_those_that_differ_are_named_with_when_they_were_seen(self, fleet: Patient) -> None:
        self.note(fleet, "laptop", BUDGET.replace('"30"', '"300"'))
        self.note(fleet, "old\x1b[2Jbox", None, days_ago=29)
        status, lines = fleet.examined()
        today, then = (time.strftime("%Y-%m-%d", time.gmtime(time.time() - days * 86_400)) for days in (0, 29))
        found = [line for line in lines if "machine:" in line]
        assert status == 0
        assert found[0].startswith("warn machine: laptop (user bob) has another administrator's file than this")
        assert f"; seen {today} " in found[0]
        assert found[1].startswith("warn machine: oldbox (user bob) has no administrator's file, or one that does not")
        assert f"; seen {then} " in found[1]
        assert found[2] == "ok   machine: the administrator's file has the same meaning on 1 other machine"

    def test_that_this_machine_is_the_one_without_is_said(self, fleet: Patient) -> None:
        fleet.admin_file.unlink()
        (found,) = fleet.lines("machine")
        assert "tower (user bob) has an administrator's file, and this machine has none" in found

    def test_one_that_was_not_seen_for_thirty_days_is_not_named(self, patient: Patient) -> None:
        self.note(patient, "laptop", BUDGET, days_ago=31)
        assert patient.lines("machine") == []

    def test_what_its_user_saw_last_is_what_counts_of_a_machine(self, fleet: Patient) -> None:
        self.note(fleet, "tower", None, days_ago=2, user="carol")
        assert fleet.lines("machine") == [
            "ok   machine: the administrator's file has the same meaning on 1 other machine"
        ]

    def test_this_machine_is_none_of_the_others(self, patient: Patient) -> None:
        self.note(patient, socket.gethostname(), BUDGET)
        assert patient.lines("machine") == []


def test_totals_are_made_anew_when_that_is_wanted_and_it_is_said_whether_they_were_right(patient: Patient) -> None:
    with closing(open_ledger(patient.url, journals=())) as ledger:
        ledger.append([row(), row()])

    assert rebuilt(patient) == "ok   totals: recomputed from 2 rows; they were right"
    with closing(sqlite3.connect(patient.state / "ledger.db")) as damaged:
        damaged.execute("UPDATE total SET row_count = row_count + 1, line_count = line_count + 1")
        damaged.commit()
    assert rebuilt(patient) == "ok   totals: recomputed from 2 rows; they were not right"
    assert rebuilt(patient) == "ok   totals: recomputed from 2 rows; they were right"
    assert patient.lines("totals") == []


def test_rows_that_come_while_totals_are_made_anew_make_none_wrong(patient: Patient) -> None:
    over = threading.Event()

    def others() -> None:
        with closing(open_ledger(patient.url, journals=())) as ledger:
            while not over.is_set():
                ledger.append([row()])

    with closing(open_ledger(patient.url, journals=())) as ledger:
        ledger.append([row() for _ in range(100)])
    writer = threading.Thread(target=others)
    writer.start()
    try:
        found = [rebuilt(patient) for _ in range(5)]
    finally:
        over.set()
        writer.join()
    assert [line for line in found if not line.endswith("they were right")] == []


def rebuilt(patient: Patient) -> str:
    out = io.StringIO()
    assert doctor.main({}, patient.environ, out, admin_file=patient.admin_file, rebuild=True) == 0
    return next(line for line in out.getvalue().splitlines() if line[5:].startswith("totals"))


def test_a_ledger_that_is_found_to_be_damaged_is_told_with_what_is_wrong_and_where_it_was_moved(
    patient: Patient,
) -> None:
    damage(patient)
    status, lines = patient.examined()
    (aside,) = patient.state.glob("*.corrupt-*Z")
    (told,) = [line for line in lines if line.startswith("warn ledger: damaged: error ")]
    assert told.endswith(f", moved_to {aside}")
    assert (status, lines[1][:12]) == (0, "ok   ledger:")


def damage(patient: Patient) -> None:
    """Makes a ledger, and all of it but its head zeros."""
    open_ledger(patient.url, journals=()).close()
    with (patient.state / "ledger.db").open("r+b") as file:
        file.seek(4096)
        file.write(bytes(65536))


def test_a_ledger_that_was_damaged_and_moved_aside_is_told_as_long_as_it_is_there(patient: Patient) -> None:
    damage(patient)
    open_ledger(patient.url, journals=(), warn=Warnings()).close()  # whoever is first tells of it, and may not be read
    (aside,) = patient.state.glob("*.corrupt-*")
    (told,) = patient.lines(f"ledger: {aside} was damaged")
    assert told.startswith("warn ")
    aside.unlink()
    assert patient.lines("ledger: /") == patient.lines("ledger")


def test_a_channel_that_cannot_post_is_a_warning_and_the_next_is_still_examined(patient: Patient) -> None:
    patient.configure(
        '[[notify]]\nname = "gone"\nurl_file = "/nowhere/webhook"\n'
        '[[notify]]\nname = "leads"\nurl = "https://hooks.example.com/secret"\n'
    )
    assert patient.lines("notify") == [
        'warn notify: "gone" (user): json; notify "gone": url_file /nowhere/webhook: no such file or directory',
        'ok   notify: "leads" (user): json to hooks.example.com, everything',
    ]


INTERCEPTOR = "import asyncio\nfrom acp_proxy.interceptor import Interceptor\nclass Watcher(Interceptor):\n"


@pytest.mark.parametrize(
    ("module", "code", "told"),
    [
        (
            "examined_good",  # it wants the loop that it has in the relay
            f"{INTERCEPTOR}    def __init__(self): asyncio.get_running_loop()\n",
            "ok   interceptor: watcher: Watcher of examined_good",
        ),
        (
            "examined_raises",
            "raise RuntimeError('no\\x1b[2J')\n",
            "FAIL interceptor: watcher; not loaded: RuntimeError: no",
        ),
        (
            "examined_stays",
            f"{INTERCEPTOR}    async def aclose(self): raise OSError('full')\n",
            "FAIL interceptor: watcher: Watcher of examined_stays; its aclose failed: OSError('full')",
        ),
        (
            "examined_waits",  # for a task that it has cancelled
            f"{INTERCEPTOR}    async def aclose(self): raise asyncio.CancelledError\n",
            "FAIL interceptor: watcher: Watcher of examined_waits; its aclose failed: CancelledError()",
        ),
    ],
    ids=["whole", "not loaded", "not closed", "cancelled"],
)
def test_an_interceptor_of_another_package_is_made_and_closed_once(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, module: str, code: str, told: str
) -> None:
    site = patient.root / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    install(site, module, code)
    status, lines = patient.examined()
    assert [line for line in lines if line[5:].startswith("interceptor: ")] == [told]
    assert status == told.startswith("FAIL")
    assert lines[-1][5:].startswith("catalog: ")
