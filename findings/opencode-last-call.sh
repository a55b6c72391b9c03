#!/usr/bin/env bash
# opencode-ai 1.18.33: the usage of a turn over ACP is that of its last model call.
# Guess: ACP calls it the tokens of the turn, so a turn of two calls, with a tool between them, has the sum of both.
# Seen: the first call, 1010 tokens, is missing; only the second, 2020 tokens, is told. The call that makes the title,
# 9090 tokens, is missing, too. A user who reads the figure under the prompt pays six times as much.
source "$(dirname "$0")/common.sh"
install_npm opencode-ai@1.18.33
cat >ask.py <<'END'
import json
from talk import Agent, ModelServer

def chunk(delta, finish=None, **more):
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | more

def answer(body):
    if "tools" not in body:
        call, delta = 9, {"content": "A title"}
    elif body["messages"][-1]["role"] == "user":
        arguments = json.dumps({"command": "true", "description": "Do nothing"})
        call, delta = 1, {"tool_calls": [{"index": 0, "id": "t", "type": "function",
                                          "function": {"name": "bash", "arguments": arguments}}]}
    else:
        call, delta = 2, {"content": "Done."}
    usage = {"prompt_tokens": 1000 * call, "completion_tokens": 10 * call, "total_tokens": 1010 * call}
    return [chunk({"role": "assistant"} | delta), chunk({}, "tool_calls" if call == 1 else "stop", usage=usage)]

model = ModelServer(answer)
provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{model.url}/v1", "apiKey": "any"},
            "models": {"m": {"limit": {"context": 100_000, "output": 1000}}}}
agent = Agent("node_modules/.bin/opencode", "acp",
              env={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
              files={".config/opencode/opencode.json": json.dumps({"model": "mock/m", "provider": {"mock": provider}})})
usage = agent.prompt("Use a tool.")["usage"]
agent.end()
print(len(model.asked), "calls,", usage["totalTokens"], "tokens told")
END
expect 'calls of the turn, and what was told' '3 calls, 2020 tokens told' "$(python ask.py)"
