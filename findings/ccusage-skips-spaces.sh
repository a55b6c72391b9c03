#!/usr/bin/env bash
# ccusage 20.0.24: a call in a log of Claude Code is not counted where a space stands behind the colon of `"usage":`.
# Guess: each line is JSON, where spaces between the parts mean nothing, so a log that a script has rewritten still counts.
# Seen: with `"usage": {"input_tokens"...`, as Python's `json.dumps` writes it, the call is left out, without a word.
# Spaces behind other colons do no harm.
source "$(dirname "$0")/common.sh"
install_npm ccusage@20.0.24
mkdir -p .claude/projects/project
cat >ask.py <<'END'
import json, os, subprocess

usage = {"input_tokens": 300, "output_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
line = {"type": "assistant", "timestamp": "2026-11-20T12:00:00.000Z", "sessionId": "s", "requestId": "r",
        "message": {"id": "m", "model": "claude-sonnet-4-5-20250929", "usage": usage}}
compact = json.dumps(line, separators=(",", ":"))
for text in (compact, compact.replace('"message":', '"message": '), compact.replace('"usage":', '"usage": '), json.dumps(line)):
    with open(".claude/projects/project/session.jsonl", "w") as file:
        print(text, file=file)
    command = ["node_modules/.bin/ccusage", "daily", "--json", "--offline"]
    report = subprocess.run(command, env=os.environ | {"HOME": os.getcwd()}, stdout=subprocess.PIPE, check=True).stdout
    print(json.loads(report)["totals"]["totalTokens"], end=" ")
END
expect 'tokens counted: compact, a space at `message`, a space at `usage`, spaces everywhere' '320 320 0 0 ' "$(python ask.py)"
