"""Reports for people: plain for a pipe, and with colours and bars as wide as the terminal is."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import SessionState
from acp_proxy.ledger import Ledger, Query
from acp_proxy.report import BY, formats, report, spreadsheet, tables
from acp_proxy.text import times
from acp_proxy.text.figures import width_of
from harness.rows import ALICE, BOB, MINUTE, NOON, amended, line, row
from tests.report.house import as_json, found

EVIL = "\x1b]0;owned\x07\x1b[2Jname\x9b31m\u202e\n"


def test_control_characters_of_names_reach_no_terminal(ledger: Ledger) -> None:
    rows = [row(line(EVIL, "1", EVIL), origin=replace(ALICE, agent=EVIL, project=EVIL), state=SessionState(title=EVIL))]
    ledger.append(rows)
    for by in BY:
        one = report(ledger, by, Query(), times.UTC_ZONE)
        written = [*tables.plain(one), *formats.as_json(one), *spreadsheet.as_csv(one)]
        assert [text for text in written if not text.replace("\n", "").isprintable()] == []
        coloured = "".join(tables.coloured(one, 100, {}))
        assert not [sign for sign in ("\x1b]", "\x1b[2J", "\x9b", "\u202e", "\x07") if sign in coloured]
    assert as_json(report(ledger, "model", Query(), times.UTC_ZONE))["rows"][0]["key"] == EVIL


def test_plain_text_is_aligned_rounded_and_says_what_it_misses(ledger: Ledger) -> None:
    rows = [
        row(line("claude-sonnet-5", "0.045989", input=5_000, cached_read=15_000, output=600)),
        row(line("unpriced", None, input=10)),
    ]
    assert "".join(tables.plain(found(ledger, "model", *rows))) == (
        "model            turns  prompt  cached  completion   total       cost\n"
        "claude-sonnet-5      1  20,000     75%         600  20,600    $0.0460\n"
        "unpriced             1      10      0%           0      10          ?\n"
        "total                2  20,010     75%         600  20,610  ≥ $0.0460\n"
        "\n"
        "≥ at least: cost of 1 row not all known · no price: 1 row (`acp-proxy prices show MODEL`) · docs/counting.md\n"
    )


def test_several_currencies_have_a_column_each(ledger: Ledger) -> None:
    rows = [row(line("opus", "1")), row(line("opus", "2")), row(line("other", "3", "credits"))]
    assert "".join(tables.plain(found(ledger, "model", *rows))).splitlines()[1:] == [
        "opus       2     200      0%          20    220  $3.0000",
        "other      1     100      0%          10    110           3.0000 credits",
        "total      3     300      0%          30    330  $3.0000  3.0000 credits",
    ]


@pytest.mark.parametrize(
    ("by", "lines"),
    [
        (
            "turn",
            [
                "started|agent|model|kind|prompt|cached|completion|total|context|USD|credits",
                "2026-11-21 12:00|claude-agent-acp|opus|turn, cancelled|1,000|10%|50|1,050|15%|$2.0000",
                "2026-11-21 12:02|codex-acp|haiku|turn|100|0%|10|110|-|3.0000 credits",
                "2026-11-21 12:01|codex-acp|unknown|autonomous|100|0%|10|110|-|?",
                "total|1,200|8%|70|1,270|≥ $2.0000|≥ 3.0000 credits",
            ],
        ),
        (
            "session",
            [
                "started|session|agent|turns|prompt|cached|completion|total|context|USD|credits",
                "2026-11-21 12:00|Fix the tests|claude-agent-acp|1|1,000|10%|50|1,050|15%|$2.0000",
                "2026-11-21 12:01|web · 71bbf5|codex-acp|1|200|0%|20|220|-|≥ 3.0000 credits",
                "total|2|1,200|8%|70|1,270|≥ $2.0000|≥ 3.0000 credits",
            ],
        ),
    ],
)
def test_a_turn_or_session_is_told_by_what_it_was_and_how_it_ended(ledger: Ledger, by: str, lines: list[str]) -> None:
    codex = replace(ALICE, agent="@zed-industries/codex-acp")
    state = SessionState(title="Fix the tests", context_used=150, context_size=1000)
    used = line("opus", "2", input=900, cached_read=100, output=50)
    stopped = row(used, context_used=150, context_size=1000, state=state)
    unasked = row(line(None, None), origin=codex, session="s2", at=NOON + MINUTE, kind="autonomous")
    rows = [amended(each, stop_reason=reason) for each, reason in ((stopped, "cancelled"), (unasked, None))]
    other = row(line("haiku", "3", "credits"), origin=codex, session="s2", at=NOON + 2 * MINUTE)
    table, _, _ = "".join(tables.plain(found(ledger, by, *rows, other))).partition("\n\n")
    assert [re.sub(" {2,}", "|", each) for each in table.splitlines()] == lines


LONG = "a-very-long-name-of-a-model-behind-a-gateway-that-goes-on-and-on"


@pytest.mark.parametrize("by", BY)
def test_a_table_fits_its_terminal(ledger: Ledger, by: str) -> None:
    rows = [
        row(line(model, cost, currency, input=10**tokens), session=model, state=SessionState(title="日本語" * 30))
        for model in (LONG, "opus")
        for cost, currency in (("1234.5", "USD"), ("0.001", "EUR"), (None, "USD"))
        for tokens in (2, 9)
    ]
    report = found(ledger, by, *rows)
    for width in (20, 40, 60, 80, 120, 200):
        text = "".join(tables.coloured(report, width, {}))
        assert max(width_of(_uncoloured(line)) for line in text.splitlines()) <= width
        assert "total" in text or width < 60


@pytest.mark.parametrize("by", BY)
def test_a_narrow_terminal_shows_what_it_is_about_and_what_it_cost(ledger: Ledger, by: str) -> None:
    rows = [row(line("some-model", cost, currency)) for cost, currency in (("12.5", "USD"), ("3.25", "EUR"))]
    text = "".join(tables.coloured(found(ledger, by, *rows), 40, {"NO_COLOR": "1"}))
    assert {"day": "2026-11-21 ", "week": "2026-W47 ", "month": "2026-11 "}.get(by, "") in text
    assert ("$12.50" in text, "€3.25" in text) == (True, True)


@pytest.mark.parametrize("by", ["session", "turn"])
def test_a_terminal_too_narrow_for_all_currencies_has_the_commonest_and_the_totals_of_others(
    ledger: Ledger, by: str
) -> None:
    costs = (("12.5", "USD"), ("1.5", "USD"), ("1234.25", "credits"), ("3.25", "EUR"))
    told = found(ledger, by, *(row(line("some-model", cost, currency)) for cost, currency in costs))
    table, _, below = "".join(tables.coloured(told, 40, {"NO_COLOR": "1"})).partition("\n\n")
    assert ("$14.00" in table.splitlines()[-1], "credits" in table, "€" in table) == (True, False, False)
    notes = [f"Not shown: {amount} of the total." for amount in ("€3.25", "1,234.25 credits")]
    assert " ".join(below.split()) == " ".join(notes)


@pytest.mark.parametrize(("by", "width"), [("agent", 40), ("agent", 80), ("session", 120), ("turn", 140)])
def test_two_agents_that_end_alike_do_not_look_alike(ledger: Ledger, by: str, width: int) -> None:
    agents = ["@agentclientprotocol/claude-agent-acp", "@zed-industries/claude-agent-acp", "@zed-industries/codex-acp"]
    rows = [row(origin=replace(ALICE, agent=agent), session=agent) for agent in agents]
    text = "".join(tables.coloured(found(ledger, by, *rows), width, {"NO_COLOR": "1"}))
    column = text.index("agent  ") - text.rfind("\n", 0, text.index("agent  ")) - 1
    names = [each[column:].split()[0] for each in text.splitlines()[1:4]]
    assert len(set(names)) == 3
    assert sum(name.endswith("agent-acp") for name in names) == 2
    assert sum(name.endswith("codex-acp") for name in names) == 1


@pytest.mark.parametrize("by", ["session", "turn"])
def test_where_there_are_several_users_a_row_says_whose_it_is(ledger: Ledger, by: str) -> None:
    (alone,) = (line.split()[0] for line in "".join(tables.plain(found(ledger, by, row()))).splitlines()[:1])
    assert (alone, "user" in "".join(tables.plain(found(ledger, by)))) == ("started", False)
    report = found(ledger, by, row(line(cost="1"), origin=BOB))
    wide, narrow = "".join(tables.plain(report)), "".join(tables.coloured(report, 60, {"NO_COLOR": "1"}))
    for text in (wide, narrow):
        assert [word for word in ("user", "bob", "alice") if word in text] == ["user", "bob", "alice"]


def test_a_terminal_gets_a_bar_per_row_as_long_as_its_cost(ledger: Ledger) -> None:
    rows = [row(line("all", "4")), row(line("half", "2")), row(line("none", None))]
    lines = "".join(tables.coloured(found(ledger, "model", *rows), 80, {})).splitlines()
    bars = {name: line.count("█") for line in lines for name in ("all", "half", "none") if line.startswith(name)}
    assert bars["none"] == 0
    assert bars["all"] == 2 * bars["half"] > 0


def test_a_full_context_is_coloured_by_the_thresholds(ledger: Ledger) -> None:
    rows = [row(context_used=used, context_size=100) for used in (74, 75, 90, 96)]
    text = "".join(tables.coloured(found(ledger, "turn", *rows), 140, {}))
    assert [_colour_before(percent, text) for percent in ("74%", "75%", "90%", "96%")] == [
        "",
        "\x1b[33m",
        "\x1b[38;5;208m",
        "\x1b[31m",
    ]


def test_no_color_is_respected(ledger: Ledger) -> None:
    ledger.append([row(context_used=96, context_size=100)])
    one = report(ledger, "turn", Query(), times.UTC_ZONE)
    plain, coloured = ("".join(tables.coloured(one, 140, environ)) for environ in ({"NO_COLOR": "1"}, {}))
    assert plain == _uncoloured(coloured)


def _uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _colour_before(text: str, coloured: str) -> str:
    """The escape sequence that the cell which holds `text` begins with."""
    found = re.search(r"(\x1b\[[0-9;]*m)? *" + re.escape(text), coloured)
    assert found
    return found[1] or ""
