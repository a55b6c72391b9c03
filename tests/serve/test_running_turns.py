"""Which turns run, by what a ledger holds for them and what the journals of the living say."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from msgspec.structs import replace

from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.report import session_key
from acp_proxy.serve.running_turns import attended_sessions, running_turns
from harness.rows import ALICE, NOON, row
from tests.ledger.holds import CAP, ELSEWHERE, GONE, hold
from tests.ledger.warned import Warnings


def test_a_turn_whose_proxy_is_gone_does_not_run_and_one_on_another_host_may(tmp_path: Path) -> None:
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as ledger:
        for turn, owner in (("here", None), ("elsewhere", ELSEWHERE), ("gone", GONE)):
            hold(ledger, turn, (CAP, "0.1"), owner=owner)
        assert {turn.id for turn in running_turns(ledger, "default", (), NOON)} == {"here", "elsewhere"}


def test_the_sessions_of_a_proxy_that_runs_are_known_until_it_ends(tmp_path: Path) -> None:
    journals, here, elsewhere = tmp_path / "journals", f"sqlite:///{tmp_path}/ledger.db", f"sqlite:///{tmp_path}/own.db"
    ours, other = row(session="s1"), row(session="s2")
    with closing(open_ledger(here, journals=())) as ledger:
        for url, known in ((here, {"s1", "s2"}), (elsewhere, set[str]())):
            with closing(open_journal([journals], url, Warnings())) as journal:
                first, second = journal.write(ours), journal.write(other)
                assert first is not None
                assert second is not None
                journal.done(first)
                journal.done(second)
                keys = {session_key(each.origin, session) for each in (ours, other) for session in known}
                assert attended_sessions(ledger, "default", [journals]) == keys
                assert attended_sessions(ledger, "another", [journals]) == set()
        assert attended_sessions(ledger, "default", [journals]) == set()


def test_only_turns_of_this_ledger_and_organisation_run(tmp_path: Path) -> None:
    journals, here, elsewhere = tmp_path / "journals", f"sqlite:///{tmp_path}/ledger.db", f"sqlite:///{tmp_path}/own.db"
    with closing(open_ledger(here, journals=())) as ledger, ExitStack() as journals_of_the_living:
        for url, organisation in ((here, "default"), (here, "another"), (elsewhere, "default")):
            journal = journals_of_the_living.enter_context(closing(open_journal([journals], url, Warnings())))
            journal.write_open(row(origin=replace(ALICE, organisation=organisation), session=f"{url} {organisation}"))
        assert [turn.session for turn in running_turns(ledger, "default", [journals], NOON)] == [f"{here} default"]
