#!/usr/bin/env bash
# @agentclientprotocol/claude-agent-acp 0.101.0 (Claude Code): its session file has the tokens of one call several times.
# Guess: a line with `message.usage` is a model call, so the tokens of a session are the sum of the lines.
# Seen: each block of an answer has its line, and each line the usage of the whole call: an answer that thinks and then
# speaks counts twice. Only `message.id` tells that the two are one.
source "$(dirname "$0")/common.sh"
install_npm node@22.23.3 @agentclientprotocol/claude-agent-acp@0.101.0
cat >ask.py <<'END'
import json
from talk import Agent, ModelServer

def block(index, kind, **text):
    (name, value), = text.items()
    yield {"type": "content_block_start", "index": index, "content_block": {"type": kind, name: ""}}
    yield {"type": "content_block_delta", "index": index, "delta": {"type": f"{name}_delta", name: value}}
    if kind == "thinking":
        yield {"type": "content_block_delta", "index": index, "delta": {"type": "signature_delta", "signature": "any"}}
    yield {"type": "content_block_stop", "index": index}

def answer(body):
    usage = {"input_tokens": 1000, "output_tokens": 20}
    message = {"id": f"msg_{len(model.asked)}", "type": "message", "role": "assistant", "model": body["model"],
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    return [{"type": "message_start", "message": message},
            *block(0, "thinking", thinking="How?"), *block(1, "text", text="Hello."),
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"}]

model = ModelServer(answer)
agent = Agent("node", "node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js",
              env={"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "any", "DISABLE_AUTOUPDATER": "1",
                   "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"})
print(agent.prompt("Say hello.")["usage"]["totalTokens"], "told", end=", ")
agent.end()
lines = [json.loads(line) for file in agent.home.glob(".claude/projects/*/*.jsonl") for line in file.open()]
calls = [line["message"] for line in lines if line["type"] == "assistant"]
print(sum(sum(call["usage"][name] for name in ("input_tokens", "output_tokens")) for call in calls), "in the file", end=", ")
print(len({call["id"] for call in calls}), "call on", len(calls), "lines")
END
expect 'tokens of a turn' '1020 told, 2040 in the file, 1 call on 2 lines' "$(python ask.py)"
