"""Usage that agents report in words of their own, in `_meta` and in tool output. Readers never raise.

What is malformed counts as absent. Who says what stands beside each reader; what it means is in `core/agents`.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from acp_proxy.core.acp import OUTPUT_UPDATES, STATE_UPDATE, count, counters, label, mapping, number, text
from acp_proxy.core.events import Counters, Meta, UpdateSeen, UsageReported
from acp_proxy.core.meter.counters import is_empty
from acp_proxy.core.money import Money

_OPENHANDS = "openhands.dev/metrics"  # fast-agent writes its status line under the same key
_STATUS_LINE = re.compile(r"([\d,]+) in, ([\d,]+) out")


class Call(Struct, frozen=True):
    """One model call, or all calls of one subagent. `subagent` is the tool call that runs it."""

    counters: Counters
    subagent: str | None = None
    model: str | None = None
    complete: bool = True  # all of the subagent's calls are in


def claude_model(meta: Meta) -> str | None:
    """The concrete model, on a `usage_update` of claude-agent-acp from 0.90 on."""
    return label(meta.get("_claude/model"))


def is_background(meta: Meta) -> bool:
    """Whether claude-agent-acp says that a background task, not the user's prompt, caused this cost."""
    return mapping(meta.get("_claude/origin")).get("kind") == "task-notification"


def cumulative(meta: Meta) -> Counters | None:
    """The session's counters so far: mistral-vibe on each `usage_update`, openhands on updates of content."""
    metrics = _metrics(meta)
    found = Counters(
        input=_first(count(meta.get("promptTokens")), count(metrics.get("input_tokens"))),
        output=_first(count(meta.get("completionTokens")), count(metrics.get("output_tokens"))),
        total=count(meta.get("totalTokens")),
        thought=count(metrics.get("reasoning_tokens")),
        cached_read=_first(count(meta.get("cachedTokens")), count(metrics.get("cache_read_tokens"))),
    )
    return None if is_empty(found) else found


def cumulative_cost(meta: Meta) -> Money | None:
    """openhands: US dollars of the session so far, 0.0 for an unknown price."""
    amount = number(_metrics(meta).get("cost"))
    if amount is None:
        return None
    try:
        cost = Money.of(amount, "USD")
    except ValueError:
        return None
    return cost if cost.nano >= 0 else None


def turn_so_far(update: UpdateSeen) -> Counters | None:
    """The turn's counters as of now."""
    return status_line(update.meta) or _turn_usage(update)


def status_line(meta: Meta) -> Counters | None:
    """fast-agent: the turn so far, as text: `3,770 in, 449 out, 1 tools`."""
    line = text(_metrics(meta).get("status_line")) if meta else None
    found = _STATUS_LINE.search(line) if line is not None else None
    if found is None or max(map(len, found.groups())) > 20:
        return None
    return Counters(*(count(int(number.replace(",", "") or 0)) for number in found.groups()))


def compacted_to(meta: Meta) -> int | None:
    """qwen-code: tokens of context after `/compress`, its own estimate."""
    compression = mapping(meta.get("contextCompression"))
    return count(compression.get("newTokenCount")) if compression.get("phase") == "done" else None


def call_usage(update: UpdateSeen) -> Call | None:
    """qwen-code: one model call, on a chunk with empty text."""
    found = counters(update.meta.get("usage"))
    if found is None or is_empty(found):
        return None
    return Call(found, text(update.meta.get("parentToolCallId")) or update.child)


def is_empty_text(update: UpdateSeen) -> bool:
    """Whether it tells no text, as qwen-code's and that of who goes by its code where it tells of a call."""
    return mapping(update.fields.get("content")).get("text") == ""


def has_just_ended(meta: Meta) -> bool:
    """Whether qwen-code tells of a call that it has made, not of one in the history of a session that is loaded.

    A client may load a session while a turn of it runs.
    """
    return "durationMs" in meta


def told_so_far(update: UpdateSeen | UsageReported) -> Counters | None:
    """Usage beside a text or a context, of whatever it is. Who is known to tell it so is read otherwise."""
    if update.child is not None:
        return None
    if isinstance(update, UsageReported):
        return counters(update.meta.get("usage")) or counters(update.meta)
    return counters(update.meta.get("usage")) if update.update in OUTPUT_UPDATES else None


def named_by_its_words(meta: Meta) -> str | None:
    """The name in `core/agents` of an agent that gives none, or another, by updates as only it writes them."""
    if "codebuddy.ai/requestId" in meta:
        return "codebuddy"
    return "OpenHands CLI ACP Agent" if "input_tokens" in _metrics(meta) else None


def reported_call(meta: Meta) -> Call | None:
    """codebuddy: one model call, on the `usage_update` after it, and perhaps on the next one again in other words."""
    found = counters(meta.get("usage"))
    return None if found is None or is_empty(found) else Call(found)


def call_that_writes(update: UpdateSeen) -> str | None:
    """codebuddy: the id of the model call that a text or a tool call comes from, of the agent's own ones."""
    own = "codebuddy.ai/parentToolCallId" not in update.meta
    return text(update.meta.get("codebuddy.ai/modelRequestId")) if own else None


def child_usage(update: UpdateSeen) -> Call | None:
    """What a subagent with a session of its own used until it fell idle, by the protocol's own words."""
    found = counters(update.fields.get("usage")) if update.update == STATE_UPDATE else None
    return None if found is None or is_empty(found) else Call(found, update.child)


def subagent_result(update: UpdateSeen) -> Call | None:
    """What a subagent in the foreground used, told once by the tool call that ran it."""
    return _claude_subagent(update) or _qwen_subagent(update)


def _turn_usage(update: UpdateSeen) -> Counters | None:
    """box-agent: as the output of a tool call that is none. Zeros stand for a provider that tells nothing."""
    told = mapping(update.fields.get("rawOutput"))
    used = mapping(told.get("tokenUsage")) if told.get("type") == "turn_usage" else {}
    sent, written, total = (count(used.get(name)) for name in ("promptTokens", "completionTokens", "totalTokens"))
    return Counters(sent, written, total) if sent or written else None


def _claude_subagent(update: UpdateSeen) -> Call | None:
    """claude-agent-acp passes on the usage of the subagent's last call; without tools that is its only one."""
    response = mapping(mapping(update.meta.get("claudeCode")).get("toolResponse"))
    usage = mapping(response.get("usage"))
    found = Counters(
        input=count(usage.get("input_tokens")),
        output=count(usage.get("output_tokens")),
        cached_read=count(usage.get("cache_read_input_tokens")),
        cached_write=count(usage.get("cache_creation_input_tokens")),
    )
    if is_empty(found) or response.get("agentId") is None:
        return None
    complete = not count(response.get("totalToolUseCount"))
    return Call(found, _tool_call(update), label(response.get("resolvedModel")), complete)


def _qwen_subagent(update: UpdateSeen) -> Call | None:
    """qwen-code sums up what it has sent call by call before: for a subagent of which no call was seen."""
    summary = mapping(mapping(update.fields.get("rawOutput")).get("executionSummary"))
    found = Counters(
        input=count(summary.get("inputTokens")),
        output=count(summary.get("outputTokens")),
        total=count(summary.get("totalTokens")),
        thought=count(summary.get("thoughtTokens")),
        cached_read=count(summary.get("cachedTokens")),
    )
    return None if is_empty(found) else Call(found, _tool_call(update))


def _tool_call(update: UpdateSeen) -> str | None:
    return text(update.fields.get("toolCallId"))


def _metrics(meta: Meta) -> dict[str, Any]:
    return mapping(mapping(meta.get("field_meta")).get(_OPENHANDS)) or mapping(meta.get(_OPENHANDS))


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
