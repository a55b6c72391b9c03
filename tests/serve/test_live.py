"""Which turns run, by what a ledger holds for them and what the journals of the living say."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from msgspec.structs import replace

from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.serve.live import running_turns
from tests.ledger.holds import CAP, ELSEWHERE, GONE, hold
from tests.ledger.rows import ALICE, NOON, Warnings, row


def test_a_turn_whose_proxy_is_gone_does_not_run_and_one_on_another_host_may(tmp_path: Path) -> None:
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as ledger:
        for turn, owner in (("here", None), ("elsewhere", ELSEWHERE), ("gone", GONE)):
            hold(ledger, turn, (CAP, "0.1"), owner=owner)
        assert {turn.id for turn in running_turns(ledger, "default", (), NOON)} == {"here", "elsewhere"}


def test_only_turns_of_this_ledger_and_organisation_run(tmp_path: Path) -> None:
    journals, here, elsewhere = tmp_path / "journals", f"sqlite:///{tmp_path}/ledger.db", f"sqlite:///{tmp_path}/own.db"
    with closing(open_ledger(here, journals=())) as ledger, ExitStack() as journals_of_the_living:
        for url, organisation in ((here, "default"), (here, "another"), (elsewhere, "default")):
            journal = journals_of_the_living.enter_context(closing(open_journal([journals], url, Warnings())))
            journal.write_open(row(origin=replace(ALICE, organisation=organisation), session=f"{url} {organisation}"))
        assert [turn.session for turn in running_turns(ledger, "default", [journals], NOON)] == [f"{here} default"]
