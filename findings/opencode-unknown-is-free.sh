#!/usr/bin/env bash
# opencode-ai 1.18.33: a model without a price costs 0 US dollars.
# Guess: ACP's `cost` is optional, so an agent that knows no price leaves it away.
# Seen: `{"amount": 0, "currency": "USD"}` with each turn, the same as of a model that is free. A sum over models is
# too low, and does not show it.
source "$(dirname "$0")/common.sh"
install_npm opencode-ai@1.18.33
cat >ask.py <<'END'
import json
from talk import Agent, ModelServer

def answer(body):
    return [{"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
             "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
             "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}}]

model = ModelServer(answer)
provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{model.url}/v1", "apiKey": "any"},
            "models": {"m": {"limit": {"context": 100_000, "output": 1000}}}}
agent = Agent("node_modules/.bin/opencode", "acp",
              env={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
              files={".config/opencode/opencode.json": json.dumps({"model": "mock/m", "provider": {"mock": provider}})})
print(agent.prompt("Say hello.")["usage"]["totalTokens"], "tokens for", agent.updates("usage_update")[-1]["cost"])
agent.end()
END
expect 'a turn of a model whose price nobody has told' "1020 tokens for {'amount': 0, 'currency': 'USD'}" "$(python ask.py)"
