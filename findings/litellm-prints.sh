#!/usr/bin/env bash
# litellm 1.110.2: asking for the price of a model that it does not know prints on stdout, eight times, in red.
# Guess: a function that raises an error says all it has to say in the error; what a library logs goes to stderr.
# Seen: `completion_cost` raises, and writes "Provider List: ..." with terminal codes to stdout before. In a process whose
# stdout is a protocol, such as an ACP agent or an MCP server, a price that is missing breaks the connection.
source "$(dirname "$0")/common.sh"
install litellm==1.110.2
cat >ask.py <<'END'
import litellm

try:
    litellm.completion_cost(model="a-model-of-next-month", prompt="one", completion="two")
except Exception:
    pass
END
printed=$(LITELLM_LOCAL_MODEL_COST_MAP=True python ask.py 2>/dev/null)
expect 'lines on stdout that name the provider list' 8 "$(grep -c 'Provider List' <<<"$printed")"
