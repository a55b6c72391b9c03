"""A hub's store on each database, and the server that one of them is on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest

from acp_proxy.hub.store import Ask, Store
from acp_proxy.ledger import open_ledger
from harness.postgres import Server, running

NOW = 1_790_000_000  # Unix s
_numbers = count()
T = TypeVar("T")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """With a database that is a ledger and the store of a hub: to copy it takes a quarter of what its tables do."""
    with running() as server:
        with closing(open_ledger(server.create("empty"), journals=())) as ledger:
            Store(ledger.tables, "acme")
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty ledger, once for each backend."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    server: Server = request.getfixturevalue("postgres")
    return server.create(f"hub{next(_numbers)}", template="empty")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_ledger(url, journals=())) as ledger:
        yield Store(ledger.tables, "acme")


def asking(store: Store) -> Ask:
    """Puts questions to a store in this thread."""

    async def ask(question: Callable[[Store], T], /) -> T:
        return question(store)

    return ask
