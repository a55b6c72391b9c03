"""LiteLLM's own account: pages of `user/daily/activity`, or rows of `spend/logs`, one a request.

Its prompt tokens have those read from and written to a cache inside. Amounts are US dollars.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise

from msgspec import Struct, field

from acp_proxy.bills import Bill, BillError, Count, File, date_of
from acp_proxy.bills.decoded import day_of, day_since_1970, decoded, not_that, one_line
from acp_proxy.bills.folding import Fold, Tokens

_EXPECTED = "a page of LiteLLM's user/daily/activity, or rows of its spend/logs"


class _Metrics(Struct, frozen=True, gc=False):
    spend: Decimal = Decimal(0)
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cache_read_input_tokens: Count = 0
    cache_creation_input_tokens: Count = 0

    def minus(self, parts: Iterable[_Metrics]) -> _Metrics:
        """What no part has; where parts were left out they do not add up to the whole."""
        rest = self
        for part in parts:
            rest = _Metrics(
                rest.spend - part.spend,
                max(0, rest.prompt_tokens - part.prompt_tokens),
                max(0, rest.completion_tokens - part.completion_tokens),
                max(0, rest.cache_read_input_tokens - part.cache_read_input_tokens),
                max(0, rest.cache_creation_input_tokens - part.cache_creation_input_tokens),
            )
        return rest


class _KeyAbout(Struct, frozen=True, gc=False):
    key_alias: str | None = None
    user_id: str | None = None
    user_email: str | None = None


class _OfKey(Struct, frozen=True, gc=False):
    metrics: _Metrics
    metadata: _KeyAbout = _KeyAbout()


class _OfModel(Struct, frozen=True, gc=False):
    metrics: _Metrics
    api_key_breakdown: dict[str, _OfKey] = field(default_factory=dict)


class _Breakdown(Struct, frozen=True, gc=False):
    models: dict[str, _OfModel] = field(default_factory=dict)


class _Day(Struct, frozen=True, gc=False):
    date: date
    metrics: _Metrics
    breakdown: _Breakdown = field(default_factory=_Breakdown)


class _About(Struct, frozen=True, gc=False):
    page: int = 1
    total_pages: int = 1


class _Activity(Struct, frozen=True, gc=False):
    results: list[_Day]
    metadata: _About = _About()


class _Written(Struct, frozen=True, gc=False):
    ephemeral_1h_input_tokens: Count | None = None


class _Details(Struct, frozen=True, gc=False):
    cached_tokens: Count | None = None
    cache_creation_token_details: _Written | None = None


class _Used(Struct, frozen=True, gc=False):
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    prompt_tokens_details: _Details | None = None


class _LogAbout(Struct, frozen=True, gc=False):
    user_api_key_alias: str | None = None
    user_api_key_user_id: str | None = None
    usage_object: _Used | None = None
    additional_usage_values: _Used | None = None


_NOTHING_MORE = _LogAbout()


class _Log(Struct, frozen=True, gc=False):
    request_id: str
    start: datetime = field(name="startTime")
    spend: Decimal | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    model: str | None = None
    api_key: str | None = None
    user: str | None = None
    metadata: _LogAbout | str | None = None


class _Logs(Struct, frozen=True, gc=False):
    data: list[_Log]
    page: int = 1
    total_pages: int = 1


def read(files: Iterable[File]) -> Bill:
    """Raises BillError."""
    reading = _Reading()
    for file in files:
        with one_line(file, _EXPECTED):
            reading.take(file)
    reading.check()
    lines = reading.fold.lines()
    days = [line.day for line in lines] + list(reading.days)
    every = frozenset(range(min(days), max(days) + 1)) if days else frozenset()
    return Bill("litellm", lines, every, every)


class _Reading:
    def __init__(self) -> None:
        self.fold = Fold()
        self.days: dict[int, list[tuple[int, int, str]]] = {}  # which pages, of how many, have rows of a day
        self._pages: dict[tuple[str, int, int], dict[object, str]] = {}  # by number and their count: each, and its file
        self._requests: dict[str, tuple[int, str]] = {}

    def take(self, file: File) -> None:
        begin = file.content.lstrip()[:1]
        if begin == b"[":
            self._add_logs(file, decoded(file, list[_Log], _EXPECTED))
        elif b'"data"' in file.content[:4096] and b'"results"' not in file.content[:4096]:
            logs = decoded(file, _Logs, _EXPECTED)
            if self._is_new("logs", _About(logs.page, logs.total_pages), frozenset(map(hash, logs.data)), file):
                self._add_logs(file, logs.data)
        else:
            answer = decoded(file, _Activity, _EXPECTED)
            if self._is_new("activity", answer.metadata, _mark(answer.results), file):
                for day in answer.results:
                    self._add_day(file, day, answer.metadata)

    def check(self) -> None:
        """Raises BillError."""
        kinds = {kind: next(iter(files.values())) for (kind, _, _), files in self._pages.items()}
        if self._requests:
            kinds.setdefault("logs", min(file for _, file in self._requests.values()))
        if len(kinds) > 1:
            raise BillError(f"{kinds['activity']} has days and {kinds['logs']} requests: expected one of both")
        for kind, _, total in self._pages:
            copies = [len(self._pages.get((kind, number, total), ())) for number in range(1, total + 1)]
            if 0 in copies or len(set(copies)) > 1:
                missing = copies.index(min(copies)) + 1
                file = min(file for (_, _, of), files in self._pages.items() if of == total for file in files.values())
                raise BillError(f"{file}: page {missing} of {total} is missing")
        for day, pages in self.days.items():
            _check_day(day, sorted(pages))

    def _is_new(self, kind: str, about: _About, mark: object, file: File) -> bool:
        if not 1 <= about.page <= max(1, about.total_pages) <= 10**6:
            raise not_that(file, _EXPECTED, f"page {about.page} of {about.total_pages}")
        known = self._pages.setdefault((kind, about.page, max(1, about.total_pages)), {})
        if mark in known:
            return False
        known[mark] = file.name
        return True

    def _add_logs(self, file: File, logs: list[_Log]) -> None:
        for log in logs:
            same = hash((log.prompt_tokens, log.completion_tokens, str(log.spend)))
            known = self._requests.get(log.request_id)
            if known is None:
                self._requests[log.request_id] = (same, file.name)
                self._add_log(file, log)
            elif known[0] != same:
                one, other = sorted((known[1], file.name))
                raise BillError(f"{one} and {other} have request {log.request_id} with different figures")

    def _add_log(self, file: File, log: _Log) -> None:
        about = log.metadata if isinstance(log.metadata, _LogAbout) else _NOTHING_MORE
        if isinstance(log.metadata, str) and log.metadata.startswith("{"):
            about = decoded(File(file.name, log.metadata.encode()), _LogAbout, _EXPECTED)
        tokens = _partition(log.prompt_tokens or 0, log.completion_tokens or 0, *_cached(about))
        who = log.user or about.user_api_key_user_id
        key = about.user_api_key_alias or log.api_key
        self.fold.add(day_of(log.start), log.model, key=key, user=who, tokens=tokens, amount=log.spend)

    def _add_day(self, file: File, day: _Day, about: _About) -> None:
        at = day_since_1970(day.date)
        self.days.setdefault(at, []).append((about.total_pages, about.page, file.name))
        self._add_metrics(at, None, None, day.metrics.minus(m.metrics for m in day.breakdown.models.values()))
        for name, model in day.breakdown.models.items():
            keys = model.api_key_breakdown
            self._add_metrics(at, name, None, model.metrics.minus(each.metrics for each in keys.values()))
            for key, each in keys.items():
                self._add_metrics(at, name, (key, each.metadata), each.metrics)

    def _add_metrics(self, day: int, model: str | None, key: tuple[str, _KeyAbout] | None, of: _Metrics) -> None:
        tokens = _partition(
            of.prompt_tokens, of.completion_tokens, of.cache_read_input_tokens, of.cache_creation_input_tokens
        )
        about = key[1] if key else _KeyAbout()
        name = (about.key_alias or key[0]) if key else None
        if any(tokens) or of.spend:
            user = about.user_email or about.user_id
            self.fold.add(day, model, key=name, user=user, tokens=tokens, amount=of.spend)


def _check_day(day: int, pages: list[tuple[int, int, str]]) -> None:
    """Rows of a day may go on in the next page of one query, and nowhere else."""
    for (total, number, file), (other_total, other_number, other) in pairwise(pages):
        if total != other_total or other_number - number > 1 or number == other_number:
            one, two = sorted((file, other))
            raise BillError(f"{one} and {two} both have {date_of(day)}: expected each day once")


def _mark(days: list[_Day]) -> object:
    """Equal for the same days with the same sums."""
    return frozenset((day.date, day.metrics, tuple(sorted(day.breakdown.models))) for day in days)


def _cached(about: _LogAbout) -> tuple[int, int, int]:
    """Tokens read from a cache, written to one, and of these for an hour; they stand at one of two places."""
    read = written = hour = 0
    for used in (about.usage_object, about.additional_usage_values):
        if used is None:
            continue
        details = used.prompt_tokens_details
        read = read or used.cache_read_input_tokens or (details and details.cached_tokens) or 0
        written = written or used.cache_creation_input_tokens or 0
        kinds = details and details.cache_creation_token_details
        hour = hour or (kinds and kinds.ephemeral_1h_input_tokens) or 0
    return read, written, hour


def _partition(prompt: int, completion: int, read: int, written: int, hour: int = 0) -> Tokens:
    hour = min(hour, written)
    return (max(0, prompt - read - written), read, written - hour, hour, completion)
