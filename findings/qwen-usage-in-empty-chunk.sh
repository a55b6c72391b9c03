#!/usr/bin/env bash
# @qwen-code/qwen-code 0.24.4: usage comes in a message without text, and its input has the cached tokens inside.
# Guess: the response to the prompt has `usage`, as in ACP, where the counters do not overlap: 700 input, 300 cached.
# Seen: the response has none. An `agent_message_chunk` whose text is empty has it in `_meta`: 1000 input, of which 300
# were cached. A client that skips empty chunks sees no tokens; one that adds the counters sees 300 too many.
source "$(dirname "$0")/common.sh"
install_npm node@22.23.3 @qwen-code/qwen-code@0.24.4
cat >ask.py <<'END'
import json
from talk import Agent, ModelServer

USAGE = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020, "prompt_tokens_details": {"cached_tokens": 300}}

def answer(body):
    whole = {"id": "1", "created": 1, "model": "m", "usage": USAGE}
    if not body.get("stream"):
        message = {"role": "assistant", "content": "{}"}
        return whole | {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    delta = {"role": "assistant", "content": "Hello."}
    return [whole | {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}]

model = ModelServer(answer)
settings = {"security": {"auth": {"selectedType": "openai"}}, "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False}}
agent = Agent("node", "node_modules/@qwen-code/qwen-code/cli.js", "--acp", files={".qwen/settings.json": json.dumps(settings)},
              env={"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "any", "OPENAI_MODEL": "qwen3-coder-plus"})
print(agent.prompt("Say hello.").get("usage"))
agent.end()
for chunk in agent.updates("agent_message_chunk"):
    usage = chunk.get("_meta", {}).get("usage", {})
    print(repr(chunk["content"]["text"]), *(f"{name} {usage[name]}" for name in ("inputTokens", "cachedReadTokens") if usage))
END
expect 'usage of the response, and the chunks with their usage' \
    "None
'Hello.'
'' inputTokens 1000 cachedReadTokens 300" "$(python ask.py)"
