"""Titles may repeat words of a prompt: they stay in a local ledger, and leave it where a configuration says so."""

from __future__ import annotations

from pathlib import Path

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
