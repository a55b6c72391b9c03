"""Titles may repeat words of a prompt: they stay in a local ledger, and leave it where a configuration says so."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.core.entry import SessionState
from acp_proxy.ledger import open_ledger
from acp_proxy.report.nothing import nothing
from harness.rows import row
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.real.team import Team

RECORDING = "claude-agent-acp-0.100.0/basic"  # its agent names the session


def titles(team: Team) -> list[str | None]:
    team.play(RECORDING)
    return [session["title"] for session in team.report("session")["rows"]]


@ONE_AT_A_TIME
def test_a_shared_ledger_gets_no_title_unless_the_configuration_shares_them(url: str, tmp_path: Path) -> None:
    kept = [title is not None for title in titles(Team(tmp_path, url))]
    assert kept == [url.startswith("sqlite")]


@ONE_AT_A_TIME
def test_a_ledger_has_titles_where_the_configuration_shares_them(url: str, tmp_path: Path) -> None:
    (title,) = titles(Team(tmp_path, url, "share_titles = true"))
    assert title


@ONE_AT_A_TIME
def test_one_key_keeps_titles_out_of_every_ledger(url: str, tmp_path: Path) -> None:
    (title,) = titles(Team(tmp_path, url, "share_titles = true\nledger.titles = false"))
    assert title is None


def test_a_copy_leaves_titles_behind_where_the_configuration_keeps_none(tmp_path: Path) -> None:
    with closing(open_ledger(f"sqlite:///{tmp_path}/old.db", journals=())) as ledger:
        ledger.append([row(state=SessionState(title="Fix the tests"))])
    team = Team(tmp_path, f"sqlite:///{tmp_path}/new.db", "ledger.titles = false")
    team.copy_from(f"sqlite:///{tmp_path}/old.db")
    assert [session["title"] for session in team.report("session")["rows"]] == [None]


@ONE_AT_A_TIME
@pytest.mark.parametrize("title", [None, "Fix the tests"])
def test_a_title_that_is_not_found_is_told_with_whether_there_is_any(url: str, title: str | None) -> None:
    with closing(open_ledger(url, journals=())) as ledger:
        ledger.append([row(state=SessionState(title=title))])
        _, told = nothing(ledger, "default", [("title", "docs")], None).splitlines()
    if title:
        assert told == 'It has no session with "docs" in its title.'
    elif url.startswith("sqlite"):
        assert (
            told == "It has no title of any session: no agent has told one, or `ledger.titles = false` keeps them out."
        )
    else:
        why = "a ledger on PostgreSQL gets titles only with `share_titles = true`"
        assert told == f"It has no title of any session: {why}."
