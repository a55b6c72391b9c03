"""The backends that the contract holds for, and a recorder of warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acp_proxy.ledger import Ledger, open_ledger
from tests.ledger.rows import Warnings

Open = Callable[[], Ledger]


@pytest.fixture(params=["sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new, empty ledger, once for each backend."""
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def another(url: str) -> Iterator[Open]:
    """Opens the same ledger again, as another process would."""
    opened: list[Ledger] = []

    def open_again() -> Ledger:
        opened.append(open_ledger(url, journals=()))
        return opened[-1]

    yield open_again
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(another: Open) -> Ledger:
    return another()


@pytest.fixture
def warnings() -> Warnings:
    return Warnings()
