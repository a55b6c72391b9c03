#!/usr/bin/env bash
# @agentclientprotocol/claude-agent-acp 0.101.0: in one response, the rows by model are more than the total above them.
# Guess: `_meta.quota.model_usage` divides `_meta.quota.token_count` among the models, so the rows add up to it.
# Seen: the turn's own call is in both; the call that makes the session's title is in the rows alone. With a title
# of 9000 tokens and a turn of 1000, the total says 1000 and its only row 10,000. Adding or comparing them goes wrong.
source "$(dirname "$0")/common.sh"
install_npm node@22.23.3 @agentclientprotocol/claude-agent-acp@0.101.0
cat >ask.py <<'END'
from talk import Agent, ModelServer

def answer(body):
    usage = {"input_tokens": 1000 if body.get("tools") else 9000, "output_tokens": 0}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}
    return [{"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"}]

model = ModelServer(answer)
agent = Agent("node", "node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js",
              env={"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "any", "DISABLE_AUTOUPDATER": "1",
                   "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"})
quota = agent.prompt("Say hello.")["_meta"]["quota"]
agent.end()
rows = [row["token_count"]["totalTokens"] for row in quota["model_usage"]]
print(quota["token_count"]["totalTokens"], *rows)
END
expect 'total of the turn, and its rows by model' '1000 10000' "$(python ask.py)"
