"""From one page of an answer to the next, until the last. Asks through a function, so that it needs no network."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from acp_proxy.bills import BillError, File
from acp_proxy.bills.decoded import decoded
from acp_proxy.reconcile.api.listings import Listing

Ask = Callable[[str, Listing, str | None], bytes]
"""The page's name for errors, what it is of, and its token -> the body of the answer. Raises BillError."""
_MOST = 10_000  # pages of one listing: a year by the minute has fewer


class _Numbers(Struct, frozen=True):
    total_pages: int | None = None


class _Paging(Struct, frozen=True):
    """What an answer says of the page after it; its rows are read elsewhere."""

    has_more: bool = False
    next_page: str | None = None
    metadata: _Numbers | None = None


def pages(listing: Listing, ask: Ask) -> Iterator[File]:
    """Each as a file that is named by what it is of. Raises BillError."""
    token = "1" if listing.by_number else None
    read = set[str | None]()
    for number in range(1, _MOST + 1):
        name = f"{listing.name}, page {number}"
        file = File(name, ask(name, listing, token))
        yield file
        read.add(token)
        token = _next(file, listing, number)
        if token is None:
            return
        if token in read:
            raise BillError(f"{name}: its next_page was read before ({token[:40]}): expected one that follows")
    raise BillError(f"{listing.name}: expected at most {_MOST:,} pages")


def _next(file: File, listing: Listing, number: int) -> str | None:
    says = decoded(file, _Paging, "an answer in pages")
    if listing.by_number:
        last = says.metadata.total_pages if says.metadata else None
        return str(number + 1) if number < (last or 1) else None
    if says.has_more and not says.next_page:
        raise BillError(f"{file.name}: expected a next_page, because has_more is true")
    return says.next_page if says.has_more else None
