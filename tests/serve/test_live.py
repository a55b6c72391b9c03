"""Which turns run, by what a ledger holds for them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from acp_proxy.ledger import open_ledger
from acp_proxy.serve.live import running_turns
from tests.ledger.holds import CAP, ELSEWHERE, GONE, hold
from tests.ledger.rows import NOON


def test_a_turn_whose_proxy_is_gone_does_not_run_and_one_on_another_host_may(tmp_path: Path) -> None:
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as ledger:
        for turn, owner in (("here", None), ("elsewhere", ELSEWHERE), ("gone", GONE)):
            hold(ledger, turn, (CAP, "0.1"), owner=owner)
        assert {turn.id for turn in running_turns(ledger, "default", (), NOON)} == {"here", "elsewhere"}
