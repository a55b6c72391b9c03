"""Questions to a ledger in a thread of its own: each is answered in time, by an answer or by an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from acp_proxy.ledger import LedgerError, LedgerUnavailableError
from acp_proxy.ledger.in_thread import InThread


class Source:
    """Says in which thread it is asked and closed; fails when told to."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.closed_by: str | None = None

    def thread(self) -> str:
        return threading.current_thread().name

    def fail(self) -> None:
        raise LedgerError("gone")

    def close(self) -> None:
        self.closed_by = self.thread()


@pytest.fixture
def opened() -> list[Source]:
    return []


@pytest.fixture
def books(opened: list[Source]) -> Iterator[InThread[Source]]:
    def open_source() -> Source:
        opened.append(Source(len(opened)))
        return opened[-1]

    books = InThread(open_source, deadline=10, name="a thread of its own")
    yield books
    books.close(within=10)


async def test_all_is_asked_in_one_thread(books: InThread[Source], opened: list[Source]) -> None:
    assert {await books.ask(Source.thread) for _ in range(3)} == {"a thread of its own"}
    assert len(opened) == 1
    books.close(within=10)
    assert opened[0].closed_by == "a thread of its own"


async def test_a_ledger_that_failed_is_opened_anew(books: InThread[Source], opened: list[Source]) -> None:
    with pytest.raises(LedgerError, match="gone"):
        await books.ask(Source.fail)
    assert await books.ask(lambda source: source.number) == 1
    assert opened[0].closed_by == "a thread of its own"


async def test_another_mistake_is_told_and_nothing_is_closed(books: InThread[Source], opened: list[Source]) -> None:
    def divide(source: Source) -> float:
        return 1 / source.number

    with pytest.raises(ZeroDivisionError):
        await books.ask(divide)
    assert await books.ask(lambda source: source.number) == 0
    assert opened[0].closed_by is None


async def test_who_waits_too_long_is_told_so_and_others_are_answered_later() -> None:
    books = InThread(lambda: Source(0), deadline=0.05, name="a thread of its own")
    go_on = threading.Event()
    asked: list[int] = []
    with pytest.raises(LedgerUnavailableError, match=r"no answer within 0\.05 s"):
        await books.ask(lambda _: go_on.wait(30))
    with pytest.raises(LedgerUnavailableError):  # it stands behind the other, and is not asked any more
        await books.ask(lambda source: asked.append(source.number))
    go_on.set()
    books.open()
    assert asked == []
    books.close(within=10)


@pytest.mark.parametrize(("rest", "times"), [(600.0, 1), (0.0, 5)])
async def test_what_cannot_be_opened_is_left_alone_for_a_while(rest: float, times: int) -> None:
    tried: list[int] = []

    def open_source() -> Source:
        tried.append(1)
        raise LedgerUnavailableError("away")

    books = InThread(open_source, deadline=10, name="a thread of its own", rest=rest)
    for _ in range(5):
        with pytest.raises(LedgerUnavailableError, match="away"):
            await books.ask(Source.thread)
    assert len(tried) == times
    books.close(within=10)
