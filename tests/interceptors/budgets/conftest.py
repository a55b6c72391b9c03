"""A hub in front of a ledger in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import hub
from harness.rows import NOON
from tests.interceptors.budgets.leads import PEOPLE


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of a hub that knows this machine's user as alice."""
    monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", "alice")
    with hub.running(f"sqlite:///{tmp_path}/hub.db", PEOPLE, clock=lambda: NOON) as url:
        yield url
