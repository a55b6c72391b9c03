"""One hub for all tests of a module that only read it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_proxy.hub.settings import Settings
from tests.hub.page.house import Hub, fill


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    ledger = f"sqlite:///{tmp_path_factory.mktemp('hub')}/ledger.db"
    fill(ledger, time.time_ns())
    with Hub(ledger, Settings(organisation="default")).running() as hub:
        yield hub


@pytest.fixture
def own_hub(tmp_path: Path) -> Iterator[Hub]:
    """One that a test may change."""
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    fill(ledger, time.time_ns())
    with Hub(ledger, Settings(organisation="default")).running() as hub:
        yield hub
