"""Bills as providers write them, of calls that are known: pages of a week each, in each provider's form."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

from msgspec import Struct, json

from acp_proxy.bills import File, date_of
from acp_proxy.bills.folding import Tokens

PER_PAGE = 7
_DAY = 86_400


class Call(Struct, frozen=True, order=True):
    """`tokens` as in `folding.Tokens`; the amount is in US dollars."""

    day: int
    model: str = "claude-sonnet-5"
    user: str = "alice"
    key: str = "key-a"
    tokens: Tokens = (100, 0, 0, 0, 10)
    amount: Decimal = Decimal("0.01")


def anthropic(calls: Sequence[Call]) -> list[File]:
    usage = _weeks("usage", calls, _anthropic_bucket(_anthropic_usage))
    return usage + _weeks("cost", calls, _anthropic_bucket(_anthropic_cost))


def analytics(calls: Sequence[Call]) -> list[File]:
    """The newer form; its answers do not say which page they are, so that files are named by their tokens."""

    def rows(of: str, figures: Callable[[Call], Any]) -> list[File]:
        made = [
            {
                "starting_at": f"{date_of(call.day)}T00:00:00Z",
                "ending_at": f"{date_of(call.day + 1)}T00:00:00Z",
                "group": {"model": call.model, "api_key_id": call.key, "actor": {"type": "user", "name": call.user}},
                of: figures(call),
            }
            for call in _by_group(calls)
        ]
        pages = [made[at : at + 5] for at in range(0, max(1, len(made)), 5)]
        return [
            _page(f"{of}_{number}", page, f"{of}_{number + 1}", number == len(pages))
            for number, page in _numbered(pages)
        ]

    return rows("usage", _anthropic_usage) + rows("cost", _anthropic_cost)


def openai(calls: Sequence[Call]) -> list[File]:
    """It knows nothing of writes for an hour."""

    def bucket(result: Callable[[Call], Any]) -> Callable[[int, list[Call]], Any]:
        return lambda day, of: {
            "object": "bucket",
            "start_time": day * _DAY,
            "end_time": (day + 1) * _DAY,
            "results": list(map(result, of)),
        }

    return _weeks("usage", calls, bucket(_openai_usage)) + _weeks("cost", calls, bucket(_openai_cost))


def litellm(calls: Sequence[Call]) -> list[File]:
    """Days, the rows of which go on in the next page."""
    pages = [sorted(calls)[at : at + 4] for at in range(0, max(1, len(calls)), 4)]
    return [
        _file(
            f"activity-{number}.json",
            {
                "results": [_litellm_day(day, list(of)) for day, of in groupby(page, lambda call: call.day)],
                "metadata": {"page": number, "total_pages": len(pages), "has_more": number < len(pages)},
            },
        )
        for number, page in _numbered(pages)
    ]


def litellm_logs(calls: Sequence[Call]) -> list[File]:
    """Rows of a request each, some in each file, and some in two."""
    rows = [_litellm_log(number, call) for number, call in enumerate(calls)]
    return [_file(f"logs-{at}.json", rows[at : at + 6]) for at in range(0, max(1, len(rows)), 5)]


def spreadsheet(calls: Sequence[Call]) -> list[File]:
    """A file for each month of days."""
    files = []
    for part, of in groupby(sorted(calls), lambda call: call.day // 30):
        text = io.StringIO()
        writer = csv.writer(text)
        titles = (
            "Date",
            "Model",
            "User",
            "API Key",
            "Input",
            "Cached read",
            "Cached write",
            "Cached write 1h",
            "Output",
        )
        writer.writerow([*titles, "Cost", "Currency"])
        for call in of:
            row = [date_of(call.day), call.model, call.user, call.key, *call.tokens]
            writer.writerow([*row, f"{call.amount:f}", "usd"])
        files.append(File(f"month-{part}.csv", text.getvalue().encode()))
    return files


FORMS: Mapping[str, tuple[Any, Callable[[Sequence[Call]], list[File]]]] = {
    "anthropic": ("anthropic", anthropic),
    "analytics": ("anthropic", analytics),
    "openai": ("openai", openai),
    "litellm": ("litellm", litellm),
    "litellm_logs": ("litellm", litellm_logs),
    "csv": ("csv", spreadsheet),
}


def _weeks(kind: str, calls: Sequence[Call], bucket: Callable[[int, list[Call]], Any]) -> list[File]:
    """All days from the first to the last in buckets, those too on which nothing was billed."""
    first, last = min(call.day for call in calls), max(call.day for call in calls)
    days = [bucket(day, [call for call in calls if call.day == day]) for day in range(first, last + 1)]
    pages = [days[at : at + PER_PAGE] for at in range(0, len(days), PER_PAGE)]
    return [_page(f"{kind}-{number}", page, "opaque", number == len(pages)) for number, page in _numbered(pages)]


def _page(name: str, data: Sequence[Any], token: str, is_last: bool) -> File:
    more = {"has_more": not is_last, "next_page": None if is_last else token}
    return _file(f"{name}.json", {"data": data, **more, "new_field": {"of": ["the future"]}})


def _file(name: str, value: Any) -> File:
    return File(name, json.Encoder(decimal_format="number").encode(value))


def _numbered(pages: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Sequence[Any]]]:
    return enumerate(pages, 1)


def _by_group(calls: Iterable[Call]) -> Iterator[Call]:
    """One row for each group, as the newer form has them."""
    for (day, model, user, key), of in groupby(sorted(calls), lambda call: (call.day, call.model, call.user, call.key)):
        group = list(of)
        uncached, read, write, write_1h, output = map(sum, zip(*(call.tokens for call in group), strict=True))
        amount = sum((call.amount for call in group), Decimal(0))
        yield Call(day, model, user, key, (uncached, read, write, write_1h, output), amount)


def _anthropic_bucket(row: Callable[[Call], Any]) -> Callable[[int, list[Call]], Any]:
    return lambda day, of: {
        "starting_at": f"{date_of(day)}T00:00:00Z",
        "ending_at": f"{date_of(day + 1)}T00:00:00Z",
        "results": [
            {"model": call.model, "api_key_id": call.key, "actor": {"name": call.user}, **row(call)} for call in of
        ],
    }


def _anthropic_usage(call: Call) -> Any:
    uncached, read, write, write_1h, output = call.tokens
    return {
        "uncached_input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": write_1h},
        "output_tokens": output,
        "server_tool_use": {"web_search_requests": 0},
    }


def _anthropic_cost(call: Call) -> Any:
    return {"amount": f"{call.amount * 100:f}", "currency": "USD", "cost_type": "tokens", "token_type": None}


def _openai_usage(call: Call) -> Any:
    uncached, read, write, write_1h, output = call.tokens
    return {
        "object": "organization.usage.completions.result",
        "input_tokens": uncached + read + write + write_1h,
        "input_cached_tokens": read,
        "input_cache_write_tokens": write + write_1h,
        "output_tokens": output,
        "model": call.model,
        "user_id": call.user,
        "api_key_id": call.key,
    }


def _openai_cost(call: Call) -> Any:
    return {
        "object": "organization.costs.result",
        "amount": {"value": call.amount, "currency": "usd"},
        "line_item": f"{call.model}, output",
        "user_id": call.user,
        "api_key_id": call.key,
    }


def _litellm_day(day: int, calls: list[Call]) -> Any:
    models: dict[str, Any] = {}
    for model in sorted({call.model for call in calls}):
        of = [call for call in calls if call.model == model]
        keys = {
            key: {
                "metrics": _metrics([call for call in of if call.key == key]),
                "metadata": {"user_id": next(call.user for call in of if call.key == key)},
            }
            for key in sorted({call.key for call in of})
        }
        models[model] = {"metrics": _metrics(of), "metadata": {}, "api_key_breakdown": keys}
    return {"date": date_of(day), "metrics": _metrics(calls), "breakdown": {"models": models, "providers": {}}}


def _metrics(calls: list[Call]) -> Any:
    return {
        "spend": sum((call.amount for call in calls), Decimal(0)),
        "prompt_tokens": sum(sum(call.tokens[:4]) for call in calls),
        "completion_tokens": sum(call.tokens[4] for call in calls),
        "cache_read_input_tokens": sum(call.tokens[1] for call in calls),
        "cache_creation_input_tokens": sum(call.tokens[2] + call.tokens[3] for call in calls),
        "successful_requests": len(calls),
    }


def _litellm_log(number: int, call: Call) -> Any:
    _, read, write, write_1h, output = call.tokens
    kinds = {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": write_1h}
    details = {"cached_tokens": read, "cache_creation_token_details": kinds}
    used = {"cache_creation_input_tokens": write + write_1h, "prompt_tokens_details": details}
    return {
        "request_id": f"request-{number}",
        "startTime": f"{date_of(call.day)}T23:59:59.9Z",
        "spend": call.amount,
        "prompt_tokens": sum(call.tokens[:4]),
        "completion_tokens": output,
        "model": call.model,
        "api_key": call.key,
        "user": call.user,
        "metadata": {"usage_object": used},
    }
