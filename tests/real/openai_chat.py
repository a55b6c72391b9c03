"""The OpenAI Chat Completions API as the model on loopback speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.real.model import Answer, Ask, Tokens, Tool, user_text
from tests.real.sse import Event, event

CACHE_WRITES, THOUGHTS = False, True


def parse(body: dict[str, Any]) -> Ask:
    prompt, rounds = "", 0
    for message in reversed(body.get("messages", [])):
        content = message.get("content") or ""
        if message["role"] == "assistant":
            rounds += bool(message.get("tool_calls"))
        elif message["role"] == "user":
            texts = [block.get("text", "") for block in content] if isinstance(content, list) else [content]
            if prompt := user_text(texts):
                break
    functions = [tool["function"] for tool in body.get("tools") or [] if tool.get("type") == "function"]
    tools = [Tool(function["name"], function.get("parameters") or {}) for function in functions]
    wanted = body.get("response_format") or {}
    schema = (wanted.get("json_schema") or {}).get(
        "schema", {"type": "object"} if wanted.get("type") == "json_object" else None
    )
    in_stream = bool((body.get("stream_options") or {}).get("include_usage"))
    return Ask(body.get("model", "?"), bool(body.get("stream")), prompt, rounds, tools, schema, in_stream)


def whole(ask: Ask, answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.tool:
        message["tool_calls"] = [_tool_call(answer, answer.tool)]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if answer.tool else "stop"}
    return _head(ask, answer, "chat.completion") | {"usage": _usage(answer.tokens), "choices": [choice]}


def events(ask: Ask, answer: Answer) -> Iterator[Event]:
    def delta(content: dict[str, Any], finish: str | None = None, delay: float = 0.0) -> Event:
        choices = [{"index": 0, "delta": content, "finish_reason": finish}]
        return event(_head(ask, answer, "chat.completion.chunk") | {"choices": choices}, delay=delay)

    yield delta({"role": "assistant", "content": ""})
    for chunk in answer.chunks:
        yield delta({"content": chunk}, delay=answer.delay)
    if answer.tool:
        yield delta({"tool_calls": [{"index": 0, **_tool_call(answer, answer.tool)}]})
    yield delta({}, "tool_calls" if answer.tool else "stop")
    if ask.usage_in_stream:
        yield event(_head(ask, answer, "chat.completion.chunk") | {"choices": [], "usage": _usage(answer.tokens)})
    yield Event(b"data: [DONE]\n\n")


def _head(ask: Ask, answer: Answer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.number:04d}", "object": kind, "created": 1_750_000_000, "model": ask.model}


def _tool_call(answer: Answer, tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "arguments": json.dumps(answer.tool_input)}
    return {"id": f"call_{answer.number:04d}", "type": "function", "function": function}


def _usage(tokens: Tokens) -> dict[str, Any]:
    prompt, completion = tokens.input + tokens.cached_read, tokens.output + tokens.thought
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached_read},
        "completion_tokens_details": {"reasoning_tokens": tokens.thought},
    }
