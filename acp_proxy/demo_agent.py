"""A small ACP agent that plays from a script: `python -m acp_proxy.demo_agent`. It needs no model, network or key.

It reports usage the way many agents do (the tokens of a turn with the turn's response, nothing else), and the same
numbers every time.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from msgspec import Struct

MODEL = "claude-sonnet-5"
SESSION = "demo-session"


class Turn(Struct, frozen=True):
    """One scripted turn. Tokens are disjoint: uncached input, cache reads, cache writes, output."""

    says: str
    tools: tuple[str, ...]
    input: int
    cached_read: int
    cached_write: int
    output: int

    def usage(self) -> dict[str, int]:
        return {
            "totalTokens": self.input + self.cached_read + self.cached_write + self.output,
            "inputTokens": self.input,
            "cachedReadTokens": self.cached_read,
            "cachedWriteTokens": self.cached_write,
            "outputTokens": self.output,
        }


SCRIPT = (
    Turn("It turns Celsius into Fahrenheit. One of its two tests fails.", (), 412, 0, 11_830, 96),
    Turn(
        "Fixed: the offset was added before scaling. Both tests pass.",
        ("read", "edit", "execute"),
        1_935,
        37_210,
        2_480,
        874,
    ),
    Turn("Scaling comes first: F = C × 9/5 + 32.", (), 388, 14_310, 0, 64),
)


def main() -> None:
    played = 0
    for line in sys.stdin:
        match json.loads(line):
            case {"method": "initialize", "id": id}:
                agent = {"name": "demo-agent", "title": "Demo agent", "version": "1.0.0"}
                _answer(id, {"protocolVersion": 1, "agentInfo": agent, "agentCapabilities": {}, "authMethods": []})
            case {"method": "session/new", "id": id}:
                _answer(id, {"sessionId": SESSION, "configOptions": [_model_option()]})
            case {"method": "session/prompt", "id": id}:
                turn = SCRIPT[played % len(SCRIPT)]
                played += 1
                _play(turn)
                _answer(id, {"stopReason": "end_turn", "usage": turn.usage()})
            case {"id": id, "method": str(method)}:
                _write({"id": id, "error": {"code": -32601, "message": f"Method not found: {method}"}})


def _play(turn: Turn) -> None:
    for number, kind in enumerate(turn.tools):
        call = {"toolCallId": f"call-{number}", "title": kind, "kind": kind}
        _update({"sessionUpdate": "tool_call", "status": "in_progress", **call})
        _update({"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": "completed"})
    for word in turn.says.split(" "):
        _update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": word + " "}})


def _model_option() -> dict[str, Any]:
    options = [{"value": MODEL, "name": "Claude Sonnet 5"}]
    return {
        "id": "model",
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": MODEL,
        "options": options,
    }


def _update(update: dict[str, Any]) -> None:
    _write({"method": "session/update", "params": {"sessionId": SESSION, "update": update}})


def _answer(id: Any, result: dict[str, Any]) -> None:
    _write({"id": id, "result": result})


def _write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
