"""The installed command: what it answers, how it ends, and that no mistake of a user is a traceback."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy import __version__
from acp_proxy.cli.commands import parser
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.startup.start import parse
from harness.rows import ALICE, MINUTE, NOON, line, row
from tests.docs.all_help import PAGE, names
from tests.ledger.warned import Warnings
from tests.machine import COMMAND, Machine, in_terminal

ROOT = Path(__file__).parents[1]
EDITORS = "zed, vscode, jetbrains, codecompanion, avante, agentic, agent-shell, obsidian, toad, acpx"
KEYS = "hour, day, week, month, session, turn, model, agent, project, user, team, kind or billing"
BY = f"{KEYS.replace(' or ', ', ')}, today or yesterday"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_version_is_that_of_the_package(machine: Machine) -> None:
    assert machine.answer("--version") == f"acp-proxy {__version__}\n"


def test_help_lists_the_commands_and_run_has_help_of_its_own(machine: Machine) -> None:
    top = machine.answer("--help")
    assert [
        name
        for name in ("run", "report", "prices", "doctor", "demo")
        if f"\n  {name} " not in top and f" {name} " not in top
    ] == []
    assert "-- AGENT [ARG...]" in machine.answer("run", "--help")
    assert "--no-summary" in machine.answer("run", "--agent", "x", "--help")
    assert machine.answer("help") == top
    assert machine.answer("help", "budget", "grant") == machine.answer("budget", "grant", "--help")


def test_the_help_of_each_command_has_an_example_that_can_be_typed() -> None:
    _, *commands = names()
    examples = re.findall(r"^Example: acp-proxy (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    for command, example in zip(commands, examples, strict=True):
        words = shlex.split(example)
        assert f"acp-proxy {example} ".startswith(f"{command} ")
        assert parse(words) if words[0] == "run" else parser().parse_args(words)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("repot",), "acp-proxy: unknown command repot; did you mean report?"),
        (("my-agent",), "acp-proxy: unknown command my-agent; see acp-proxy --help"),
        (("version",), "acp-proxy: unknown command version; did you mean --version?"),
        (("help", "budgets"), "acp-proxy: unknown command budgets; did you mean budget?"),
        (("budget", "lst"), "acp-proxy: unknown action lst; did you mean list?"),
        (
            ("setup", "zedd"),
            f"acp-proxy: setup: expected {EDITORS}, not 'zedd'; for any other: put `acp-proxy run --` "
            "before the command that starts an ACP agent (docs/editors.md)",
        ),
        (("report", "--nonsense"), "acp-proxy: unknown option --nonsense; see acp-proxy report --help"),
        (("report", "--sinc", "7d"), "acp-proxy: unknown option --sinc; did you mean --since?"),
        (("budget", "list", "--jsn"), "acp-proxy: unknown option --jsn; did you mean --json?"),
        (("--confg", "x.toml", "report"), "acp-proxy: unknown option --confg; did you mean --config?"),
        (
            ("--ledger", "sqlite:////x", "--confg", "x", "report"),
            "acp-proxy: unknown option --confg; did you mean --config?",
        ),
        (("report", "modl"), f"acp-proxy: report: expected {BY}, not 'modl'"),
        (("report", "model", "x"), "acp-proxy: one word too many: 'x'; see acp-proxy report --help"),
        (("report", "week", "--by", "day"), "acp-proxy: report: expected week or --by day, not both"),
        (("report", "today", "--since", "7d"), "acp-proxy: report: expected today, or --since and --until, not both"),
        (("sh", "-c", "x"), "acp-proxy: unknown command sh; to relay an agent: acp-proxy run -- sh -c x"),
        *(
            (
                (*command, "--since", "2026-12-01", "--until", "2026-11-01"),
                "acp-proxy: --until: expected a time after that of --since, not '2026-11-01'",
            )
            for command in (("report",), ("export", "--focus"))
        ),
        (
            ("report", "--since", "soon"),
            "acp-proxy: --since: expected a date such as 2026-11-01, today, an RFC 3339 time or 7d, not 'soon'",
        ),
        (("report", "--tz", "Mars"), "acp-proxy: --tz: expected a time zone such as Europe/Berlin or UTC, not 'Mars'"),
        (
            ("report", "--ledger", "mysql://u:secret@h/d"),
            "acp-proxy: --ledger: expected a path, sqlite:///PATH, postgresql://HOST/DATABASE or https://HUB",
        ),
        (
            ("prices", "cost", "m", "--input", "many"),
            "acp-proxy: --input: expected a number of tokens, not 'many'; see acp-proxy prices cost --help",
        ),
        (("report", "--since"), "acp-proxy: --since needs a value: TIME; see acp-proxy report --help"),
        (("report", "--json=1"), "acp-proxy: --json takes no value; see acp-proxy report --help"),
        (("--version=x",), "acp-proxy: --version takes no value; see acp-proxy --help"),
        (("report", "--json", "--csv"), "acp-proxy: expected --json or --csv, not both; see acp-proxy report --help"),
        (("session",), "acp-proxy: there is no session in the ledger yet"),
        (
            ("budget", "grant", "daily", "--amount", "5"),
            "acp-proxy: budget grant: expected --reason TEXT and --for DURATION; see acp-proxy budget grant --help",
        ),
        (("status", "--", "x"), "acp-proxy: --: expected no more words; only the agent's command of `run` follows --"),
        *(
            (
                ("report", "--limit", number),
                f"acp-proxy: --limit: expected a number of lines, at least 1, not '{number}'; see acp-proxy "
                "report --help",
            )
            for number in ("0", "-1", "many", "1.5", "²")
        ),
        *(
            (
                (*command, number),
                f"acp-proxy: {command[-1]}: expected a number of {what} up to 1,000,000,000,000, not '{number}'; see "
                f"acp-proxy {shown} --help",
            )
            for command, what, shown in (
                (("report", "--limit"), "lines", "report"),
                (("prices", "cost", "m", "--input"), "tokens", "prices cost"),
            )
            for number in ("1000000000001", "9" * 5000)
        ),
        (("report", "--by=--"), f"acp-proxy: --by: expected {KEYS}, not '--'"),
        (("report", "--tz=--"), "acp-proxy: --tz: expected a time zone such as Europe/Berlin or UTC, not '--'"),
        (("report", "--config=--"), "acp-proxy: --: cannot be read: no such file or directory"),
        (("prices", "show", " "), "acp-proxy: MODEL: expected a model's name; see acp-proxy prices show --help"),
        *(
            (
                (*command, "caf\udce9"),
                f"acp-proxy: {what}: expected text in UTF-8; see acp-proxy {shown} --help",
            )
            for command, what, shown in (
                (("prices", "show"), "MODEL", "prices show"),
                (("session",), "ID", "session"),
                (("report", "--title"), "--title", "report"),
                (("budget", "check", "--agent"), "--agent", "budget check"),
                (("budget", "grant", "daily", "--for-user"), "--for-user", "budget grant"),
            )
        ),
        (("serve", "--port", "9" * 5000), "acp-proxy: --port: expected a port from 0 to 65535, such as 9464"),
        (
            ("--config", "/nowhere.toml", "report"),
            "acp-proxy: /nowhere.toml: cannot be read: no such file or directory",
        ),
    ],
)
def test_a_mistake_is_one_line_and_status_2(machine: Machine, arguments: tuple[str, ...], complaint: str) -> None:
    assert machine.complaint(*arguments) == complaint


def test_a_key_that_does_not_exist_names_its_choices(machine: Machine) -> None:
    assert machine.complaint("report", "--by", "weekday") == f"acp-proxy: --by: expected {KEYS}, not 'weekday'"


def test_a_ledger_that_cannot_be_read_is_one_line(machine: Machine) -> None:
    (machine.home / "file").write_text("")
    for path, why in (("file/ledger.db", "Not a directory"), ("", "Is a directory")):
        place = Path(machine.home, path)
        assert machine.complaint("report", "--ledger", f"sqlite:///{place}") == f"acp-proxy: ledger {place}: {why}"


def test_a_mistake_in_the_environment_names_the_variable(machine: Machine) -> None:
    complaint = machine.complaint("report", environ={"ACP_PROXY_LEDGER__URI": "x"})
    assert complaint == "acp-proxy: ACP_PROXY_LEDGER__URI: unknown key; did you mean ACP_PROXY_LEDGER__URL?"


def test_an_empty_ledger_is_no_error_in_any_form(machine: Machine) -> None:
    where, how, _ = machine.answer("report").splitlines()
    assert where == f"Nothing in the ledger yet: {machine.url}"
    assert "`acp-proxy setup --list`" in how
    assert machine.answer("report", "--since", "7d", "--user", "bob").startswith("Nothing in the ledger yet")
    assert json.loads(machine.answer("report", "--json"))["rows"] == []
    assert machine.answer("report", "--csv").count("\n") == 1


READING = (
    "report",
    "report --by turn --json",
    "session last",
    "status",
    "status --json",
    "export --focus",
    "metrics",
    "budget list",
    "budget check",
    "budget grants",
    "budget simulate",
    "budget grant daily --amount 5 --for 2h --reason release",
)


@pytest.mark.parametrize("command", READING)
def test_a_ledger_that_is_not_there_is_named_and_is_one_without_rows(machine: Machine, command: str) -> None:
    machine.fill()
    config = machine.home / "daily.toml"
    config.write_text('[[budget]]\nname = "daily"\nwindow = "day"\nlimit = { turns = 9 }\n')
    typed = machine.home / "typo" / "ledger.db"
    for _ in range(2):
        said = machine.run(*command.split(), "--config", str(config), "--ledger", f"sqlite:///{typed}")
        told, *others = said.stderr.splitlines()
        assert told == f"acp-proxy: there is no ledger at {typed}: expected one that `acp-proxy run` has made"
        assert (said.returncode, bool(others)) == ((2, True) if command == "session last" else (0, False))
        if typed.exists():  # who writes, or is to be read by another user, makes it
            assert command == "metrics" or "grant " in command
            break


def test_a_ledger_that_a_file_stands_in_the_way_of_is_not_said_to_be_none_yet(machine: Machine) -> None:
    (machine.home / "file").write_text("")
    path = f"{machine.home}/file/ledger.db"
    told = f"acp-proxy: ledger {path}: Not a directory"
    assert machine.complaint("report", "--ledger", f"sqlite:///{path}") == told


@pytest.mark.parametrize("command", [command for command in READING if command != "metrics"][:-1])
def test_who_only_looks_makes_no_ledger(machine: Machine, command: str) -> None:
    status = 2 if command == "session last" else 0  # there is none
    assert machine.run(*command.split()).returncode == status
    assert [file for file in machine.home.rglob("*") if file.name.startswith("ledger.db")] == []


def test_ledger_and_config_may_stand_before_or_after_the_command(machine: Machine) -> None:
    machine.fill()
    empty = f"sqlite:///{machine.home}/empty.db"
    open_ledger(empty, journals=()).close()
    config = machine.home / "other.toml"
    config.write_text(f'[ledger]\nurl = "{empty}"\n')
    assert "2026-11-21" in machine.answer("report")
    for arguments in (
        ("--ledger", empty, "report"),
        ("report", "--ledger", empty),
        ("--config", str(config), "report"),
    ):
        assert "Nothing in the ledger yet" in machine.answer(*arguments)
    assert "2026-11-21" in machine.answer("--config", str(config), "report", "--ledger", machine.url)


def test_a_limit_leaves_lines_out_and_says_how_many_but_nothing_of_the_total(machine: Machine) -> None:
    machine.fill(3)
    every = machine.answer("report", "--by", "turn")
    *lines, total, empty, note = machine.answer("report", "--by", "turn", "--limit", "1").splitlines()
    assert [*lines, total] == [*every.splitlines()[:2], every.splitlines()[-1]]
    assert (empty, note) == ("", "2 more not shown")
    assert machine.answer("report", "--limit", "2", "--by", "turn").endswith("\n1 more not shown\n")
    assert machine.answer("report", "--by", "turn", "--limit", "3") == every
    as_json = json.loads(machine.answer("report", "--by", "turn", "--limit", "1", "--json"))
    assert (len(as_json["rows"]), as_json["omitted"], as_json["total"]["turns"]) == (1, 2, 3)
    assert "omitted" not in json.loads(machine.answer("report", "--by", "turn", "--json"))
    assert machine.answer("report", "--by", "turn", "--limit", "2", "--csv").count("\n") == 3


def test_a_report_in_a_pipe_is_plain(machine: Machine) -> None:
    machine.fill()
    assert machine.answer("report", "--by", "model") == (
        "model            turns  prompt  cached  completion  total     cost\n"
        "claude-sonnet-5      1     100      0%          10    110  $0.0460\n"
        "total                1     100      0%          10    110  $0.0460\n"
    )


def test_filters_and_times_reach_the_ledger(machine: Machine) -> None:
    machine.fill()
    options = ("--title", "TESTS", "--agent", "claude-agent-acp", "--since", "2026-11-21", "--tz", "Europe/Berlin")
    found = json.loads(machine.answer("report", "--json", "--until", "2026-11-22T00:00:00+01:00", *options))
    assert (found["since"], found["until"], found["timezone"]) == (
        "2026-11-20T23:00:00Z",
        "2026-11-21T23:00:00Z",
        "Europe/Berlin",
    )
    assert found["total"]["turns"] == 1
    assert json.loads(machine.answer("report", "--json", "--title", "other"))["total"]["turns"] == 0


def test_a_name_that_the_ledger_does_not_know_is_told_with_the_one_that_was_meant(machine: Machine) -> None:
    ledger = open_ledger(machine.url, journals=())
    ledger.append([row(line("opus"), origin=replace(ALICE, agent="@org/claude-agent-acp"), at=NOON)])
    ledger.close()
    asked = ("--agent", "claude-agent-acp", "--model", "opsu", "--user", "xyz", "--title", "t", "--team", "core")
    assert machine.answer("report", *asked).splitlines() == [
        "Nothing in the ledger matches.",
        'It has no agent "claude-agent-acp"; did you mean @org/claude-agent-acp?',
        'It has no model "opsu"; did you mean opus?',
        'It has no user "xyz"; there is alice.',
        "It has no title of any session: no agent has told one, or `ledger.titles = false` keeps them out.",
    ]


def test_a_time_in_which_nothing_was_is_told_with_the_time_in_which_there_is_something(machine: Machine) -> None:
    ledger = open_ledger(machine.url, journals=())
    ledger.append([row(at=NOON), row(at=NOON + 12 * 60 * MINUTE)])
    ledger.close()
    told = machine.answer("report", "--since", "2062-11-01", "--tz", "Europe/Berlin")
    assert told == "Nothing in the ledger matches.\nIt has rows from 2026-11-21 to 2026-11-22.\n"


def test_a_report_is_of_ones_own_organisation_as_the_page_and_the_metrics_are(machine: Machine) -> None:
    ledger = open_ledger(machine.url, journals=())
    ledger.append([row(line("opus")), row(line("opus"), origin=replace(ALICE, organisation="acme", team="theirs"))])
    ledger.close()
    for organisation in ("default", "acme"):
        found = machine.answer("report", "--json", environ={"ACP_PROXY_IDENTITY__ORGANISATION": organisation})
        assert json.loads(found)["total"]["turns"] == 1
    assert "theirs" not in machine.answer("report", "--by", "team")
    assert machine.answer("report", "--team", "thiers").splitlines()[1] == 'It has no team "thiers"; there is core.'
    elsewhere = machine.answer("report", environ={"ACP_PROXY_IDENTITY__ORGANISATION": "other"})
    assert elsewhere == 'Nothing in the ledger is of organisation "other": it has rows of "acme" and "default".\n'


def test_a_ledger_that_a_killed_proxy_was_to_make_is_missed_by_nobody_and_any_other_is(machine: Machine) -> None:
    owed, other = (f"sqlite:///{machine.home}/{name}.db" for name in ("owed", "other"))
    journals = [machine.home / ".local/state/acp-proxy/journal"]
    with closing(open_journal(journals, owed, Warnings())) as journal:
        journal.write(row())
    with closing(open_journal(journals, other, Warnings())) as journal:
        journal.write(row())  # of a proxy that runs, and may still make it
        found = machine.run("report", "--ledger", other)
        assert found.stderr.startswith(f"acp-proxy: there is no ledger at {machine.home}/other.db: ")
    copied = machine.answer("ledger", "copy", "--from", owed, "--to", f"sqlite:///{machine.home}/copy.db")
    assert copied.startswith("Copied 1 row to ")
    found = machine.run("report", "--json", "--ledger", owed)
    assert (found.stderr, json.loads(found.stdout)["total"]["turns"]) == ("", 1)


def test_a_report_has_the_rows_that_a_killed_proxy_left_in_its_journal(machine: Machine) -> None:
    journal = open_journal([machine.home / ".local/state/acp-proxy/journal"], machine.url, Warnings())
    journal.write(row())
    journal.close()
    assert json.loads(machine.answer("report", "--json"))["total"]["turns"] == 1


def test_a_terminal_gets_colours_and_bars_that_fit_it(machine: Machine) -> None:
    machine.fill()
    shown = in_terminal(machine, 80, "report", "--by", "turn")
    assert "\x1b[" in shown
    assert "█" in shown
    assert "\x1b[" not in in_terminal(machine, 80, "report", TERM="dumb")


@pytest.mark.parametrize(("asked", "begins"), [("report --by turn --json", b"{"), ("demo", b"$")])
def test_a_reader_that_goes_away_is_no_error(machine: Machine, asked: str, begins: bytes) -> None:
    machine.fill(3000)  # more than a pipe holds
    command = subprocess.Popen(
        [*COMMAND, *asked.split()],
        env=machine.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout
    assert command.stderr
    assert command.stdout.read(1) == begins
    command.stdout.close()
    assert (command.stderr.read(), command.wait(30)) == (b"", 0)
    command.stderr.close()


@pytest.mark.parametrize("command", ["report", "doctor", "status", "metrics --textfile acp.prom", "budget list"])
def test_who_has_closed_stdout_and_stderr_is_answered_by_the_status_alone(machine: Machine, command: str) -> None:
    asked = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND, *command.split()]
    environ = {**machine.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run(asked, env=environ, cwd=machine.home, timeout=60).returncode == 0
    assert (machine.home / "acp.prom").exists() == ("acp.prom" in command)
    wrong = subprocess.run([*asked, "--ledger", "mysql:///"], env=environ, cwd=machine.home, timeout=60)
    assert wrong.returncode == (1 if command == "doctor" else 2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["report", "doctor", "metrics", "setup --list", "budget list", "status"])
@pytest.mark.parametrize("before", [False, True])  # a status is kept, once it could be said
def test_a_full_disk_is_one_line(machine: Machine, command: str, before: bool) -> None:
    if before:
        machine.answer(*command.split())
    with Path("/dev/full").open("w") as full:
        asked = [*COMMAND, *command.split()]
        done = subprocess.run(asked, env=machine.environ, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    said = "acp-proxy: the answer cannot be written: no space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_prices_list_show_and_cost_answer_in_text_and_json(machine: Machine) -> None:
    assert "anthropic/claude-sonnet-4-5 " in machine.answer("prices", "list", "sonnet-4-5")
    assert json.loads(machine.answer("prices", "show", "claude-sonnet-4-5", "--json"))["context"] == 200_000
    tokens = ("--input", "1200", "--output", "700", "--thought", "100", "--cached-read", "0")
    assert json.loads(machine.answer("prices", "cost", "claude-sonnet-4-5", *tokens, "--json"))["cost"] == {
        "USD": "0.0156"
    }
    assert machine.answer("prices", "cost", "claude-sonnet-4-5", *tokens).startswith("$0.0156 ")


def test_prices_know_the_configuration_and_what_is_unknown(machine: Machine) -> None:
    config = machine.home / ".config/acp-proxy/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[prices.mine]\ninput = "7"\n[aliases]\ndefault = "mine"\n')
    assert json.loads(machine.answer("prices", "cost", "default", "--input", "1000", "--json"))["cost"] == {
        "USD": "0.007"
    }
    unknown = json.loads(machine.answer("prices", "cost", "nobody-knows", "--input", "1", "--json"))
    assert (unknown["resolved"], unknown["cost"]) == (None, {})


@pytest.mark.parametrize("asked", [("show", "nope"), ("cost", "nope", "--input", "1")], ids=" ".join)
def test_a_model_that_is_not_known_is_one_line_and_a_status_of_its_own(machine: Machine, asked: Sequence[str]) -> None:
    done = machine.run("prices", *asked)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == 'nope: not in the catalog; [prices."nope"] gives it a price\n'
    assert json.loads(machine.answer("prices", *asked, "--json"))["resolved"] is None


def test_prices_depend_on_the_time_and_on_the_largest_context(machine: Machine) -> None:
    def cost(model: str, *options: str) -> str:
        found = json.loads(machine.answer("prices", "cost", model, "--input", "1000000", "--json", *options))
        return str(found["cost"]["USD"])

    assert cost("gemini-3.8-flash", "--at", "2027-01-01") != cost("gemini-3.8-flash", "--at", "2026-12-31")
    assert cost("gemini-2.5-pro", "--context-used", "1000") != cost("gemini-2.5-pro")


def test_a_ledger_is_copied_into_another_one_and_reports_are_the_same(machine: Machine) -> None:
    machine.fill(3)
    other = f"sqlite:///{machine.home}/other.db"
    for copied in ("3 rows", "0 of 3 rows"):
        said = machine.answer("ledger", "copy", "--to", other)
        assert said == f"Copied {copied} to {other}, which keeps what it had.\n"
    report = ("report", "--by", "session", "--json")
    assert machine.answer(*report, "--ledger", other) == machine.answer(*report)
    machine.answer("ledger", "copy", "--from", other)


def test_a_copy_says_which_rows_reports_will_not_show(machine: Machine) -> None:
    machine.fill(3)
    team = Path(machine.home) / "team.toml"
    team.write_text('[identity]\norganisation = "example"\n', encoding="utf-8")
    other = f"sqlite:///{machine.home}/other.db"
    assert machine.answer("ledger", "copy", "--to", other, "--config", str(team)).splitlines()[1:] == [
        '3 rows of organisation "default": reports and budgets of "example" do not count them.'
    ]
    reported = json.loads(machine.answer("report", "--json", "--ledger", other, "--config", str(team)))
    assert reported["total"]["turns"] == 0


def test_what_cannot_be_copied_is_one_line(machine: Machine) -> None:
    path = f"{machine.home}/.local/state/acp-proxy/ledger.db"
    none = f"acp-proxy: there is no ledger at {path}: expected one that `acp-proxy run` has made"
    assert machine.complaint("ledger", "copy") == none
    assert not Path(path).exists()
    machine.fill()
    assert machine.complaint("ledger", "copy") == f"acp-proxy: ledger sqlite:///{path}: cannot be copied into itself"
    expected = "expected a path, sqlite:///PATH, postgresql://HOST/DATABASE or https://HUB"
    assert machine.complaint("ledger", "copy", "--to", "mysql://alice:secret@db/x") == f"acp-proxy: --to: {expected}"
    from_nothing = machine.complaint("ledger", "copy", "--from", "", "--to", f"sqlite:///{machine.home}/other.db")
    assert from_nothing.startswith("acp-proxy: --from: expected")
    beyond = f"{machine.home}/{'x' * 300}/ledger.db"  # as in a directory that may not be entered, also for root
    from_beyond = machine.complaint("ledger", "copy", "--from", f"sqlite:///{beyond}")
    assert from_beyond == f"acp-proxy: ledger {beyond}: File name too long"
    assert not (Path(machine.home) / "other.db").exists()


@pytest.mark.parametrize("command", ["budget list", "metrics", "report", "status", "doctor"])
def test_a_working_directory_that_was_removed_is_no_error(machine: Machine, command: str) -> None:
    done = run_where_the_directory_is_gone(machine, *command.split())
    assert (done.returncode, done.stderr) == (0, "")


def test_a_ledger_that_would_stand_in_a_directory_that_was_removed_is_one_line(machine: Machine) -> None:
    done = run_where_the_directory_is_gone(machine, "report", "--ledger", "sqlite:///l.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "acp-proxy: ledger.url: l.db: the working directory was removed\n"


def run_where_the_directory_is_gone(machine: Machine, *arguments: str) -> subprocess.CompletedProcess[str]:
    gone = machine.home / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    return subprocess.run(
        ["sh", "-c", script, "sh", *COMMAND, *arguments],
        env={**machine.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )


NAME_SERVERS_SAY_NOTHING = """
import socket, sys, threading

def look_up(*_, **__):
    threading.Event().wait()

socket.getaddrinfo = look_up
sys.modules["uvloop"] = None  # which asks the system without Python
from acp_proxy.startup.start import main
sys.exit(main(["--ledger", "postgresql://db.example.com/x", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("command", ["report", "budget list"])
def test_no_command_waits_for_a_name_server_beyond_what_it_says(machine: Machine, command: str) -> None:
    pytest.importorskip("psycopg")
    asked = [sys.executable, "-c", NAME_SERVERS_SAY_NOTHING, *command.split()]
    done = subprocess.run(asked, env=machine.environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == "acp-proxy: ledger postgresql://db.example.com:5432/x: no answer in time\n"
    assert (done.returncode, done.stdout) == (2, "")


def test_prices_may_be_asked_for_at_the_very_beginning_of_time(machine: Machine) -> None:
    def since(at: str) -> object:
        return json.loads(machine.answer("prices", "show", "claude-sonnet-5-5", "--json", "--at", at))["since"]

    assert since("1970-01-01T00:00:00Z") == since("1970-01-01T00:00:01Z") != since("2026-11-21")


def test_doctor_ends_with_1_when_something_fails(machine: Machine) -> None:
    assert "ok   ledger: " in machine.answer("doctor")
    done = machine.run("doctor", environ={"ACP_PROXY_LEDGER__URI": "x"})
    assert done.returncode == 1
    assert done.stdout.startswith("FAIL config: ACP_PROXY_LEDGER__URI: unknown key")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_where_there_is_no_utf_8_other_characters_are_written(machine: Machine, encoding: str) -> None:
    ledger = open_ledger(machine.url, journals=())
    ledger.append([row(line("claude-sonnet-5", "1"), line("unknown", None), at=NOON, context_used=9, context_size=90)])
    ledger.close()
    for command in (("report",), ("session", "last"), ("status", "--format", "{today} ≥"), ("setup", "--list")):
        assert machine.run(*command, environ={"PYTHONIOENCODING": encoding}).returncode == 0
    said = [machine.run("report", environ={"PYTHONIOENCODING": code}).stdout for code in (encoding, "utf-8")]
    assert said[0] == said[1].replace("≥", ">").replace("·", "." if encoding == "ascii" else "·")
    assert "> $1" in said[0]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_bar_ends_in_no_question_mark_where_there_is_no_utf_8(machine: Machine, encoding: str) -> None:
    ledger = open_ledger(machine.url, journals=())
    ledger.append([row(line(f"model-{cost}", str(cost)), at=NOON) for cost in range(1, 12)])
    ledger.close()
    shown = in_terminal(machine, 80, "report", "--by", "model", PYTHONIOENCODING=encoding, NO_COLOR="1")
    assert len(shown.splitlines()) == 13
    assert "?" not in shown
    assert "?" not in machine.answer("prices", "cost", "gpt-5.4", "--input", "1", environ={"PYTHONIOENCODING": "ascii"})


def test_wide_characters_that_cannot_be_written_leave_columns_where_they_are(machine: Machine) -> None:
    ledger = open_ledger(machine.url, journals=())
    ledger.append([row(line("模型", "1"), at=NOON), row(line("opus", "2"), at=NOON)])
    ledger.close()
    lines = machine.run("report", "--by", "model", environ={"PYTHONIOENCODING": "ascii"}).stdout.splitlines()
    assert "????" in lines[2]
    assert len({len(line) for line in lines}) == 1
