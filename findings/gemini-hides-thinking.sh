#!/usr/bin/env bash
# @google/gemini-cli 0.61.0: the usage that it tells over ACP lacks the tokens of thinking, which are billed as output.
# Guess: of a call with 20 tokens of text and 500 of thinking it tells an output of 520, or the 500 beside the 20.
# Seen: an output of 20, and 500 nowhere in the response. The agent knows better: its own session file has them.
# 300 of the 1000 prompt tokens came from a cache; these, too, are only in the file.
source "$(dirname "$0")/common.sh"
install_npm @google/gemini-cli@0.61.0
cat >ask.py <<'END'
import json
from talk import Agent, ModelServer

TOKENS = {"promptTokenCount": 1000, "cachedContentTokenCount": 300, "candidatesTokenCount": 20, "thoughtsTokenCount": 500}

def answer(body):
    routes = "responseJsonSchema" in body.get("generationConfig", {})  # which model should answer?
    text = '{"complexity_reasoning": "short", "complexity_score": 10}' if routes else "Hello."
    part = {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
            "usageMetadata": TOKENS | {"totalTokenCount": 1520}}
    return part if routes else [part]

model = ModelServer(answer)
settings = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}}
agent = Agent("node", "node_modules/@google/gemini-cli/bundle/gemini.js", "--acp",
              env={"GEMINI_API_KEY": "any", "GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_CLI_NO_RELAUNCH": "true"},
              files={".gemini/settings.json": json.dumps(settings)})
print("told", agent.prompt("Say hello.")["_meta"]["quota"]["token_count"])
agent.end()
lines = [json.loads(line) for file in agent.home.glob(".gemini/tmp/*/chats/*.jsonl") for line in file.open()]
print("kept", *({name: line["tokens"][name] for name in ("input", "cached", "output", "thoughts")}
               for line in lines if line.get("type") == "gemini"))
END
expect 'what ACP was told, and what the session file has' \
    "told {'input_tokens': 1000, 'output_tokens': 20}
kept {'input': 1000, 'cached': 300, 'output': 20, 'thoughts': 500}" "$(python ask.py)"
