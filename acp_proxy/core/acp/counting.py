"""Readers of counted values: the end and usage of a turn, the cost of a session, numbers of characters.

Of agents' own `_meta` only `quota` is read here, which three of them share; the rest is for `core/meter/dialects.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from acp_proxy.core.acp.characters import text_length
from acp_proxy.core.acp.names import OUTPUT_UPDATES, THOUGHT_UPDATES
from acp_proxy.core.acp.reading import Update, meta_of
from acp_proxy.core.acp.values import count, label, mapping, number, text
from acp_proxy.core.events import Counters, Meta, ModelCounters
from acp_proxy.core.jsonrpc import decode
from acp_proxy.core.money import Money, currency_code
from acp_proxy.core.stop_reasons import ENDED, FAILED

_LARGE = 1 << 18  # bytes of a line above which its parts are not measured one by one
_DIGITS = 16  # of the largest count
_MODELS = 100  # of one turn that are told apart
_NO_COUNTERS = Counters()
_COUNTERS = {  # by the names that agents and their providers use; of several for one counter the last wins
    "prompt_tokens": "input",
    "promptTokenCount": "input",
    "input_tokens": "input",
    "inputTokens": "input",
    "promptTokens": "input",
    "completion_tokens": "output",
    "candidatesTokenCount": "output",
    "output_tokens": "output",
    "outputTokens": "output",
    "completionTokens": "output",
    "totalTokenCount": "total",
    "total_tokens": "total",
    "totalTokens": "total",
    "thoughtsTokenCount": "thought",
    "reasoning_tokens": "thought",
    "reasoningTokens": "thought",
    "reasoning_output_tokens": "thought",
    "reasoningOutputTokens": "thought",
    "thought_tokens": "thought",
    "thoughtTokens": "thought",
    "thoughtsTokens": "thought",
    "thoughts_tokens": "thought",
    "cachedContentTokenCount": "cached_read",
    "cache_read_input_tokens": "cached_read",
    "cacheReadInputTokens": "cached_read",
    "cache_read_tokens": "cached_read",
    "cacheReadTokens": "cached_read",
    "cached_tokens": "cached_read",
    "cached_input_tokens": "cached_read",
    "cachedInputTokens": "cached_read",
    "cached_read_tokens": "cached_read",
    "cachedReadTokens": "cached_read",
    "cachedTokens": "cached_read",
    "cache_creation_input_tokens": "cached_write",
    "cacheCreationInputTokens": "cached_write",
    "cacheCreationTokens": "cached_write",
    "cache_write_tokens": "cached_write",
    "cacheWriteTokens": "cached_write",
    "cache_write_input_tokens": "cached_write",
    "cacheWriteInputTokens": "cached_write",
    "cached_write_tokens": "cached_write",
    "cachedWriteTokens": "cached_write",
}
_DETAILS = (  # objects in which some providers tell parts
    "prompt_tokens_details",
    "completion_tokens_details",
    "input_tokens_details",
    "output_tokens_details",
    "inputTokenDetails",
    "outputTokenDetails",
    "inputTokensDetails",
    "outputTokensDetails",
)


class Ending(Struct, frozen=True):
    """The last message of a turn: the result of a prompt (v1), or an idle state (v2)."""

    stop_reason: str
    counters: Counters | None = None
    quota: Counters | None = None
    model_usage: tuple[ModelCounters, ...] = ()
    meta: Meta = field(default_factory=dict)


def ends(result: Any) -> bool:
    """Whether a prompt's result gives a stop reason, as v1's do."""
    return isinstance(result, dict) and text(result.get("stopReason")) is not None


def accepts(result: Any) -> bool:
    """Whether a prompt's result is v2's: the prompt is taken in, its turn goes on."""
    return isinstance(result, dict) and "messageId" in result and not ends(result)


def ending(fields: Any) -> Ending:
    """The end of a turn from a prompt's result or an idle state. Any reason is kept, none is `end_turn`."""
    fields = mapping(fields)
    meta = meta_of(fields)
    reason = label(fields.get("stopReason")) or (FAILED if fields.get("error") else ENDED)
    used = counters(fields.get("usage")) or counters(meta.get("usage"))
    quota = meta.get("quota")
    if not isinstance(quota, dict):
        return Ending(reason, used, meta=meta)
    rows = _either(quota, "model_usage", "modelUsage")
    by_model = tuple(_model_rows(rows[:_MODELS])) if isinstance(rows, list) else ()
    return Ending(reason, used, _token_count(quota), by_model, meta)


def context_of(fields: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Tokens in use and the window's size, of a `usage_update`."""
    return count(fields.get("used")), count(fields.get("size"))


def count_in(json: bytes) -> int | None:
    """A number of tokens from its JSON; None also for a number that is not written plainly."""
    return count(int(json)) if len(json) <= _DIGITS and json.isdigit() else None


def cost_of(fields: Mapping[str, Any]) -> Money | None:
    """The cumulative cost of a `usage_update`."""
    cost = mapping(fields.get("cost"))
    amount, currency = number(cost.get("amount")), currency_code(label(cost.get("currency")) or "")
    if amount is None or not currency:
        return None
    try:
        money = Money.of(amount, currency)
    except ValueError:
        return None
    return money if money.nano >= 0 else None


def cost_in(json: bytes) -> Money | None:
    """The result of `cost_of`, from the JSON of `cost`."""
    return cost_of({"cost": decode(json)})


def cost_is_null(fields: Mapping[str, Any]) -> bool:
    """Whether `cost` is there and null, which clears it in v2."""
    return "cost" in fields and fields["cost"] is None


def counters(value: Any) -> Counters | None:
    """Token counters under any of the names they go by; None when there are none."""
    if not isinstance(value, dict):
        return None
    found: dict[str, int] = {}
    for place in (*[mapping(value[name]) for name in _DETAILS if name in value], value):
        for name, counter in _COUNTERS.items():
            if name in place and (counted := count(place[name])) is not None:
                found[counter] = counted
    return Counters(**found) if found else None


def prompt_chars(params: Mapping[str, Any]) -> int:
    """Characters of text in a prompt's blocks."""
    return text_length(params.get("prompt"))


def update_chars(update: Update) -> int:
    """Characters of text in a chunk or a message; tools are measured by `tool_chars`."""
    if update.kind in OUTPUT_UPDATES or update.kind in THOUGHT_UPDATES:
        return text_length(update.fields.get("content"))
    return 0


def tool_chars(fields: Mapping[str, Any], size: int) -> tuple[int, int]:
    """Characters of JSON of a tool's input and of its output; of a large line, its `size` in bytes for both together.

    `rawOutput` and `content` mostly say the same: the first counts where there is one.
    """
    shown = next((fields[name] for name in ("rawOutput", "content", "output") if fields.get(name)), None)
    if size > _LARGE:
        return 0, size
    try:
        return _json_length(fields.get("rawInput")), _json_length(shown)
    except (ValueError, TypeError, RecursionError):  # half a surrogate pair somewhere, or nested very deep
        return 0, size


def _model_rows(rows: list[Any]) -> Iterator[ModelCounters]:
    for row in rows:
        if isinstance(row, dict) and (model := label(row.get("model"))):
            yield ModelCounters(model, _token_count(row) or _NO_COUNTERS)


def _token_count(fields: Mapping[str, Any]) -> Counters | None:
    return counters(_either(fields, "token_count", "tokenCount"))


def _either(fields: Mapping[str, Any], *spellings: str) -> Any:
    return next((fields[name] for name in spellings if name in fields), None)


def _json_length(value: Any) -> int:
    return len(msgspec.json.encode(value)) if value else 0
