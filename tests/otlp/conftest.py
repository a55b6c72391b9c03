"""An empty ledger with its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_proxy.config import Config
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from tests.metrics.scrapes import configuration


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configuration(tmp_path)


@pytest.fixture
def ledger(config: Config) -> Iterator[BudgetLedger]:
    opened = open_ledger(config.ledger.url, journals=())
    yield opened
    opened.close()
