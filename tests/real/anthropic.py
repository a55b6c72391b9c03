"""The Anthropic Messages API as the model on loopback speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.real.model import Answer, Ask, Tokens, Tool, user_text
from tests.real.sse import Event, event

CACHE_WRITES, THOUGHTS = True, False


def parse(body: dict[str, Any]) -> Ask:
    prompt, rounds = "", 0
    for message in reversed(body.get("messages", [])):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if message["role"] == "assistant":
            rounds += any(block.get("type") == "tool_use" for block in blocks)
        elif message["role"] == "user":
            prompt = user_text([block.get("text", "") for block in blocks if block.get("type") == "text"])
            if prompt and not prompt.startswith("[Request interrupted"):
                break
    tools = [Tool(tool["name"], tool.get("input_schema") or {}) for tool in body.get("tools") or [] if "name" in tool]
    output = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    return Ask(body.get("model", "?"), bool(body.get("stream")), prompt, rounds, tools, output.get("schema"))


def whole(ask: Ask, answer: Answer) -> dict[str, Any]:
    message = _message(ask, answer)
    message["usage"] = _usage(answer.tokens, answer.tokens.output)
    message["content"] = [{"type": "text", "text": answer.text}]
    if answer.tool:
        message["content"].append(_tool_use(answer, answer.tool, answer.tool_input))
    return message | {"stop_reason": "tool_use" if answer.tool else "end_turn"}


def events(ask: Ask, answer: Answer) -> Iterator[Event]:
    yield _event("message_start", message=_message(ask, answer))
    index = 0
    if answer.thinking:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        yield _event("content_block_start", index=0, content_block=block)
        yield _event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": answer.thinking})
        yield _event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "bW9jaw=="})
        yield _event("content_block_stop", index=0)
        index = 1
    yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
    for chunk in answer.chunks:
        yield _event(
            "content_block_delta", index=index, delta={"type": "text_delta", "text": chunk}, delay=answer.delay
        )
    yield _event("content_block_stop", index=index)
    if answer.tool:
        index += 1
        yield _event("content_block_start", index=index, content_block=_tool_use(answer, answer.tool, {}))
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.tool_input)}
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": "tool_use" if answer.tool else "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage=_usage(answer.tokens, answer.tokens.output))
    yield _event("message_stop")


def _event(kind: str, *, delay: float = 0.0, **data: Any) -> Event:
    return event({"type": kind, **data}, kind, delay)


def _message(ask: Ask, answer: Answer) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.number:04d}",
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(answer.tokens, 1),
    }


def _usage(tokens: Tokens, output: int) -> dict[str, Any]:
    return {
        "input_tokens": tokens.input,
        "cache_read_input_tokens": tokens.cached_read,
        "cache_creation_input_tokens": tokens.cached_write,
        "cache_creation": {"ephemeral_5m_input_tokens": tokens.cached_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }


def _tool_use(answer: Answer, tool: Tool, tool_input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{answer.number:04d}", "name": tool.name, "input": tool_input}
