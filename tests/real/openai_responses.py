"""The OpenAI Responses API as the model on loopback speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from tests.real.model import Answer, Ask, Tokens, Tool, user_text
from tests.real.sse import Event, event

CACHE_WRITES, THOUGHTS = True, True


def parse(body: dict[str, Any]) -> Ask:
    items = body.get("input") or []
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": items}]
    prompt, rounds = "", 0
    for item in reversed(items):
        match item:
            case {"type": "function_call" | "custom_tool_call" | "local_shell_call"}:
                rounds += 1
            case {"role": "user", "content": content}:
                texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
                if prompt := user_text(texts):
                    break
    schema = ((body.get("text") or {}).get("format") or {}).get("schema")
    return Ask(body.get("model", "?"), bool(body.get("stream")), prompt, rounds, _tools(body, items), schema)


def _tools(body: dict[str, Any], items: list[dict[str, Any]]) -> list[Tool]:
    """Offered in the request, in items of their own, and in namespaces."""
    offered = list(body.get("tools") or [])
    for item in items:
        if item.get("type") == "additional_tools":
            offered += item.get("tools") or []
    flat = [tool for outer in offered for tool in (outer["tools"] if outer.get("type") == "namespace" else [outer])]
    return [
        Tool(tool["name"], tool.get("parameters") or {}, freeform=tool["type"] == "custom")
        for tool in flat
        if tool.get("type") in ("function", "custom")
    ]


def whole(ask: Ask, answer: Answer) -> dict[str, Any]:
    return _response(ask, answer, "completed", _items(answer), _usage(answer.tokens))


def events(ask: Ask, answer: Answer) -> Iterator[Event]:
    numbers = count(1)

    def say(kind: str, *, delay: float = 0.0, **data: Any) -> Event:
        return event({"type": kind, "sequence_number": next(numbers), **data}, kind, delay)

    yield say("response.created", response=_response(ask, answer, "in_progress", [], None))
    items = _items(answer)
    for index, item in enumerate(items):
        where = {"item_id": item["id"], "output_index": index}
        match item["type"]:
            case "message":
                yield say("response.output_item.added", output_index=index, item=item | {"content": []})
                part = {"type": "output_text", "text": "", "annotations": []}
                yield say("response.content_part.added", part=part, content_index=0, **where)
                for chunk in answer.chunks:
                    yield say("response.output_text.delta", delta=chunk, content_index=0, delay=answer.delay, **where)
                yield say("response.output_text.done", text=answer.text, content_index=0, **where)
            case "reasoning":
                yield say("response.output_item.added", output_index=index, item=item)
                thought: dict[str, Any] = {"delta": answer.thinking, "summary_index": 0}
                yield say("response.reasoning_summary_text.delta", **thought, **where)
            case _:
                yield say("response.output_item.added", output_index=index, item=item)
        yield say("response.output_item.done", output_index=index, item=item)
    yield say("response.completed", response=_response(ask, answer, "completed", items, _usage(answer.tokens)))


def _response(ask: Ask, answer: Answer, status: str, output: list[Any], usage: Any) -> dict[str, Any]:
    return {
        "id": f"resp_{answer.number:04d}",
        "object": "response",
        "created_at": 1_750_000_000,
        "status": status,
        "model": ask.model,
        "output": output,
        "usage": usage,
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": False,
        "tools": [],
        "metadata": {},
    }


def _items(answer: Answer) -> list[dict[str, Any]]:
    number, items = f"{answer.number:04d}", list[dict[str, Any]]()
    if answer.thinking:
        summary = [{"type": "summary_text", "text": answer.thinking}]
        items.append({"type": "reasoning", "id": f"rs_{number}", "encrypted_content": "bW9jaw==", "summary": summary})
    content = [{"type": "output_text", "text": answer.text, "annotations": []}]
    items.append(
        {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
    )
    if answer.tool:
        call = {"call_id": f"call_{number}", "name": answer.tool.name, "status": "completed"}
        if answer.tool.freeform:
            items.append({"type": "custom_tool_call", "id": f"ctc_{number}", "input": answer.tool_input, **call})
        else:
            arguments = json.dumps(answer.tool_input)
            items.append({"type": "function_call", "id": f"fc_{number}", "arguments": arguments, **call})
    return items


def _usage(tokens: Tokens) -> dict[str, Any]:
    prompt, output = tokens.input + tokens.cached_read + tokens.cached_write, tokens.output + tokens.thought
    cached = {"cached_tokens": tokens.cached_read, "cache_write_tokens": tokens.cached_write}
    return {
        "input_tokens": prompt,
        "input_tokens_details": cached,
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": tokens.thought},
        "total_tokens": prompt + output,
    }
