"""A ledger of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import BudgetLedger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[BudgetLedger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    yield ledger
    ledger.close()
