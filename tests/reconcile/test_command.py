"""`acp-proxy reconcile` as people type it: answers, mistakes, and what it does not touch."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.core.money import Money
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import captures, open_ledger
from acp_proxy.ledger.captures import Capture
from acp_proxy.reconcile import formats
from harness.rows import line, row
from tests.bills.made import Call, anthropic, spreadsheet
from tests.reconcile.month import FIRST, calls_of, priced, reconciled, rows

USED = [row(line("claude-sonnet-5", "0.002", input=1000, output=10), at=FIRST * DAY)]
CALLS = [priced(Call(FIRST, tokens=(2000, 0, 0, 0, 20))), priced(Call(FIRST + 1, "=evil()\x1b[31m"))]


@pytest.fixture
def bill(tmp_path: Path) -> list[str]:
    """Files of a bill, in a directory with a ledger."""
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    ledger.append(USED)
    ledger.close()
    for file in (*anthropic(CALLS), *spreadsheet(CALLS)):
        (tmp_path / file.name).write_bytes(file.content)
    return [str(tmp_path / file.name) for file in anthropic(CALLS)]


def said(directory: Path, *words: str, through: str = "-m acp_proxy") -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(directory), "PATH": os.environ["PATH"], "TZ": "Asia/Tokyo"}
    command = [sys.executable, *through.split(), "reconcile", *words, "--ledger", str(directory / "ledger.db")]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)


def test_the_table_says_how_much_was_seen_and_why_the_rest_was_not(tmp_path: Path, bill: list[str]) -> None:
    answer = said(tmp_path, "anthropic", *bill)
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = answer.stdout.splitlines()
    assert lines[1].split()[:4] == ["2026-11-01", "2,020", "1,010", "50%"]
    assert "anthropic, 2026-11-01 to 2026-11-02 (UTC): the ledger has 47% of the tokens" in answer.stdout
    assert "- claude-sonnet-5: calls that the ledger has not, on 2026-11-01: 1,010 tokens" in answer.stdout
    assert "\x1b" not in answer.stdout


def test_json_has_rows_total_and_findings_in_exact_figures(tmp_path: Path, bill: list[str]) -> None:
    found = json.loads(said(tmp_path, "anthropic", *bill, "--by", "model", "--json").stdout)
    assert (found["provider"], found["by"], found["timezone"]) == ("anthropic", "model", "UTC")
    assert (found["since"], found["until"]) == ("2026-11-01T00:00:00Z", "2026-11-03T00:00:00Z")
    sonnet = next(each for each in found["rows"] if each["key"] == "claude-sonnet-5")
    assert sonnet["captured"]["tokens"] == "0.5"
    assert sonnet["bill"]["tokens"]["total"] == 2020
    assert sonnet["ledger"]["cost"] == {"USD": "0.002"}
    kinds = [each["kind"] for each in found["findings"]]
    assert "tokens_unseen" in kinds
    assert "day_unseen" in kinds


def test_what_was_seen_is_kept_only_where_that_is_asked_for(tmp_path: Path, bill: list[str]) -> None:
    def kept() -> list[Capture]:
        with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as ledger:
            return captures.latest(ledger.tables.read, "default")

    assert said(tmp_path, "anthropic", *bill).returncode == 0
    assert kept() == []
    total = json.loads(said(tmp_path, "anthropic", *bill, "--keep", "--json").stdout)["total"]
    (found,) = kept()
    assert (found.provider, found.since, found.until) == ("anthropic", FIRST * DAY, (FIRST + 2) * DAY)
    assert (found.billed_tokens, found.seen_tokens) == (total["bill"]["tokens"]["total"], 1010)
    assert Money(found.billed, found.currency).text == total["bill"]["cost"]["USD"]
    assert found.seen == 2_000_000


def test_csv_has_the_rows_and_no_formula(tmp_path: Path, bill: list[str]) -> None:
    cells = list(csv.DictReader(io.StringIO(said(tmp_path, "anthropic", *bill, "--by", "model", "--csv").stdout)))
    assert {each["key"] for each in cells} == {"claude-sonnet-5", "'=evil()"}
    sonnet = next(each for each in cells if each["key"] == "claude-sonnet-5")
    assert (sonnet["bill_total"], sonnet["ledger_total"], sonnet["captured_tokens"]) == ("2020", "1010", "0.5")


def test_a_spreadsheet_gives_the_same_rows(tmp_path: Path, bill: list[str]) -> None:
    sheet = [str(tmp_path / file.name) for file in spreadsheet(CALLS)]
    one, other = (
        json.loads(said(tmp_path, *words, "--json").stdout) for words in (["anthropic", *bill], ["csv", *sheet])
    )
    assert one["rows"] == other["rows"]


def test_in_a_terminal_the_table_fits_and_its_entries_can_be_pasted(tmp_path: Path) -> None:
    calls = [Call(call.day, call.model, amount=call.amount * 2, tokens=call.tokens) for call in calls_of(rows())]
    found = reconciled(tmp_path, rows(), anthropic(calls))
    text = formats.as_text(found, 60, {"NO_COLOR": "1"})
    table, _, entries = text.partition("\n[prices.")
    assert max(map(len, table.splitlines())) <= 60
    assert entries.splitlines()[1].startswith('input = "')


def test_it_opens_no_connection_and_no_file_but_those_it_was_given(tmp_path: Path, bill: list[str]) -> None:
    """Told by the interpreter itself, which tells each file and each socket."""
    script = tmp_path / "watched.py"
    script.write_text(
        "import sys\n"
        "sys.dont_write_bytecode = True\n"  # else what was compiled just now is a file
        "def told(event, given):\n"
        "    if event.startswith('socket.') or event == 'subprocess.Popen':\n"
        "        raise SystemExit(f'{event} {given}')\n"
        "    if event == 'open' and 'w' in str(given[1]):\n"
        "        raise SystemExit(f'wrote {given}')\n"
        "sys.addaudithook(told)\n"
        "from acp_proxy.cli import main\n"
        "sys.exit(main())\n",
        encoding="utf-8",
    )
    before = sorted(path.name for path in tmp_path.rglob("*"))
    answer = said(tmp_path, "anthropic", *bill, through=str(script))
    assert (answer.returncode, answer.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


MISTAKES: list[tuple[list[str], str]] = [
    (["anthropic", "no-such-file.json"], "no-such-file.json: expected a file of the bill: no such file or directory"),
    (["anthropic", "."], ".: expected a file of the bill: is a directory"),
    (["anthropic"], "reconcile: expected FILE"),
    (["mistral", "bill.json"], "expected anthropic, openai, litellm or csv, not 'mistral'"),
    (["openai", "BILL"], "expected a page of OpenAI's organization/usage/completions or organization/costs"),
    (["anthropic", "BILL", "--by", "team"], "--by: expected day, model, user or key, not 'team'"),
    (["anthropic", "BILL", "--map", "key"], "--map: expected ID=USER, such as apikey_01Rj=alice, not 'key'"),
    (["anthropic", "BILL", "--column", "day=Day"], "--column: expected a bill of csv"),
    (["csv", "BILL", "--column", "when=Day"], "--column: expected one of day, model"),
    (["csv", "BILL"], "expected a column of days"),
]


@pytest.mark.parametrize(("words", "told"), MISTAKES)
def test_a_mistake_is_one_line_and_status_2(tmp_path: Path, bill: list[str], words: list[str], told: str) -> None:
    answer = said(tmp_path, *(bill[0] if word == "BILL" else word for word in words))
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("acp-proxy: ")
    assert answer.stderr.count("\n") == 1
    assert told in answer.stderr
