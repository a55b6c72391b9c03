#!/usr/bin/env bash
# agent-client-protocol 0.12.1 (the Python SDK of ACP): token counters may be texts, booleans or snake_case.
# Guess: the schema says integer and camelCase, so "5", true and `input_tokens` are refused, as by a schema validator.
# Seen: all are read: "5" is 5, true is 1 token, and `input_tokens` is taken for `inputTokens`. A peer that
# reads them strictly sees no usage where this SDK sees some.
source "$(dirname "$0")/common.sh"
install agent-client-protocol==0.12.1
cat >ask.py <<'END'
from acp.schema import Usage

for usage in (
    {"inputTokens": "5", "outputTokens": "7", "totalTokens": "12"},
    {"inputTokens": True, "outputTokens": 7, "totalTokens": 8},
    {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12},
):
    read = Usage.model_validate(usage)
    print(read.input_tokens, read.output_tokens, read.total_tokens, end="; ")
END
expect 'input, output and total as read' '5 7 12; 1 7 8; 5 7 12; ' "$(python ask.py)"
