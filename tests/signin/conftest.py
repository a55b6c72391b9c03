"""A hub that serves, and a home to sign in from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_proxy.hub.settings import Settings
from tests.hub.served import Served


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Served]:
    with Served(f"sqlite:///{tmp_path}/ledger.db", Settings(organisation="acme")).running() as served:
        yield served


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine waits 5 seconds before it asks again: here the person has answered before."""
    monkeypatch.setattr("acp_proxy.signin.command.time.sleep", lambda _: None)
