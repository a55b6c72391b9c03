"""What pages of time buckets have in common: each bucket once, none that overlaps another, no page missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.bills import DAYS, BillError

Kind = Literal["usage", "cost"]
_DAY = 86_400


class Bucket(Struct, frozen=True):
    """From `start` to `end`, exclusive, in Unix seconds."""

    start: int
    end: int
    file: str

    @property
    def text(self) -> str:
        return f"{_moment(self.start)} to {_moment(self.end)}"

    @property
    def day(self) -> int:
        """That of UTC. Raises BillError where it is more than one."""
        day = self.start // _DAY
        if day not in DAYS or self.end // _DAY not in DAYS:
            raise BillError(f"{self.file}: expected buckets of the years from 1970 to 2261")
        if self.start >= self.end or (self.end - 1) // _DAY != day:
            raise BillError(f"{self.file}: expected buckets of one day of UTC or less, not {self.text}")
        return day


class Page(Struct, frozen=True):
    """What of a page is remembered; `mark` is equal for equal buckets and differs for others."""

    file: str
    kind: Kind | None  # None: no bucket has a row, and either kind looks like that
    buckets: tuple[tuple[Bucket, object], ...]
    next_page: str | None  # the token of the page that follows
    split: bool = False  # a bucket may go on in the next page


class Pages:
    """All pages of a bill so far. `new` says which buckets of a page were not there yet."""

    def __init__(self) -> None:
        self._pages: dict[object, Page] = {}
        self._marks: dict[tuple[Kind | None, int, int], tuple[Bucket, object]] = {}
        self._files: list[str] = []

    def new(self, page: Page) -> Iterator[int]:
        """Positions of buckets to count. Raises BillError for one that another file has with other content."""
        self._files.append(page.file)
        content = (page.kind, tuple((each.start, each.end, mark) for each, mark in page.buckets))
        same = self._pages.setdefault(content, page)
        if same is not page:  # what is said of it must not depend on which came first
            last = None in (page.next_page, same.next_page)
            self._pages[content] = replace(
                same, file=min(same.file, page.file), next_page=None if last else same.next_page
            )
            return
        for position, (bucket, mark) in enumerate(page.buckets):
            if page.split:
                yield position
                continue
            where = (page.kind, bucket.start, bucket.end)
            if where not in self._marks:
                self._marks[where] = (bucket, mark)
                yield position
            elif page.kind is not None and self._marks[where][1] != mark:
                raise _overlap(self._marks[where][0], bucket, page.kind)

    def days(self, kind: Kind) -> frozenset[int]:
        """Those that pages of a kind are about, and pages without rows, where there is any of that kind."""
        pages = self._pages.values()
        if not any(page.kind == kind for page in pages) and any(page.kind for page in pages):
            return frozenset()
        return frozenset(bucket.day for page in pages if page.kind in (kind, None) for bucket, _ in page.buckets)

    def check(self) -> None:
        """Raises BillError for buckets that overlap, or for a page that is missing."""
        for kind in ("usage", "cost"):
            spans = {(b.start, b.end): b for page in self._of(kind) for b, _ in page.buckets}
            for (_, one), (_, other) in pairwise(sorted(spans.items())):
                if other.start < one.end:
                    raise _overlap(one, other, kind)
        for page in sorted(self._pages.values(), key=lambda page: page.file):
            if page.next_page is not None and not self._has_next(page):
                raise BillError(
                    f"{page.file}: a page is missing: expected the one after {_last(page)}, "
                    f"which its next_page names: {page.next_page}"
                )

    def _of(self, kind: Kind | None) -> Iterable[Page]:
        return [page for page in self._pages.values() if page.kind == kind]

    def _has_next(self, page: Page) -> bool:
        """Answers do not say of which token they are: their time does, or the names of files, where they say it."""
        if self._is_named(page):
            return True
        others = [each for each in self._pages.values() if each is not page and _may_follow(page, each)]
        if page.split:
            named = any(map(self._is_named, self._pages.values()))
            return not named and any(each.next_page is None for each in others)
        end = max((bucket.end for bucket, _ in page.buckets), default=None)
        return any(bucket.start == end for other in others for bucket, _ in other.buckets)

    def _is_named(self, page: Page) -> bool:
        """Whether a file is called by the token of the page that follows."""
        return page.next_page is not None and any(page.next_page in name for name in self._files)


def _may_follow(page: Page, other: Page) -> bool:
    return page.split == other.split and (page.kind == other.kind or None in (page.kind, other.kind))


def _last(page: Page) -> str:
    last = max((bucket for bucket, _ in page.buckets), key=lambda bucket: bucket.end, default=None)
    return last.text if last else "an empty one"


def _overlap(one: Bucket, other: Bucket, kind: str) -> BillError:
    first, second = sorted((one, other), key=lambda each: (each.start, each.end, each.file))
    return BillError(
        f"{first.file} has {kind} of {first.text} and {second.file} of {second.text}: "
        "expected each time once, of one query"
    )


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%MZ")
