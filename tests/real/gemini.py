"""The Gemini API as the model on loopback speaks it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.real.model import Answer, Ask, Tool, user_text
from tests.real.sse import Event, event

CACHE_WRITES, THOUGHTS = False, True


def parse(body: dict[str, Any], path: str) -> Ask:
    model, _, method = path.rpartition("/")[2].partition(":")
    prompt, rounds = "", 0
    for message in reversed(body.get("contents", [])):
        parts = message.get("parts") or []
        if message.get("role") == "model":
            rounds += any("functionCall" in part for part in parts)
        elif not any("functionResponse" in part for part in parts) and (
            prompt := user_text([part.get("text", "") for part in parts])
        ):
            break
    functions = [function for tool in body.get("tools") or [] for function in tool.get("functionDeclarations") or []]
    tools = [Tool(each["name"], each.get("parametersJsonSchema") or each.get("parameters") or {}) for each in functions]
    config = body.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    if schema is None and config.get("responseMimeType") == "application/json":
        schema = {"type": "object"}
    return Ask(model, method == "streamGenerateContent", prompt, rounds, tools, schema)


def whole(ask: Ask, answer: Answer) -> dict[str, Any]:
    return _chunk(ask, answer, [{"text": answer.text}, *_last(answer)], finished=True)


def events(ask: Ask, answer: Answer) -> Iterator[Event]:
    if answer.thinking:
        yield event(_chunk(ask, answer, [{"text": "**Thinking** " + answer.thinking, "thought": True}]))
    for chunk in answer.chunks:
        yield event(_chunk(ask, answer, [{"text": chunk}]), delay=answer.delay)
    yield event(_chunk(ask, answer, _last(answer) or [{"text": ""}], finished=True))


def _last(answer: Answer) -> list[dict[str, Any]]:
    if answer.tool is None:
        return []
    return [{"functionCall": {"name": answer.tool.name, "args": answer.tool_input}, "thoughtSignature": "bW9jaw=="}]


def _chunk(ask: Ask, answer: Answer, parts: list[dict[str, Any]], *, finished: bool = False) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finished:
        candidate["finishReason"] = "STOP"
    tokens = answer.tokens
    prompt, spoken = tokens.input + tokens.cached_read, tokens.output if finished else 1
    usage = {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": tokens.cached_read,
        "thoughtsTokenCount": tokens.thought,
        "candidatesTokenCount": spoken,
        "totalTokenCount": prompt + tokens.thought + spoken,
    }
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": ask.model,
        "responseId": f"resp_{answer.number:04d}",
    }
