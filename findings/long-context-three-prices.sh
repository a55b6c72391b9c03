#!/usr/bin/env bash
# genai-prices 0.2.3, ccusage 20.0.24 and model-prices 0.0.5: one call with 300,000 tokens of input has three prices.
# Guess: the list price of a model is a fact, and tables of it agree: Claude Sonnet 4.5 is $3 a million, $6 above 200,000.
# Seen: 1.80, 1.20 and 0.90 dollars. genai-prices takes the high price for the whole call, ccusage for the tokens above
# the threshold, like a tax bracket, and model-prices knows no threshold. A comparison of tools compares these rules.
source "$(dirname "$0")/common.sh"
install genai-prices==0.2.3 model-prices==0.0.5
install_npm ccusage@20.0.24
mkdir -p .claude/projects/project
cat >.claude/projects/project/session.jsonl <<'END'
{"type":"assistant","timestamp":"2026-11-20T12:00:00.000Z","sessionId":"s","requestId":"r","message":{"id":"m","model":"claude-sonnet-4-5-20250929","usage":{"input_tokens":300000,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}}
END
cat >ask.py <<'END'
import json, sys
from datetime import UTC, datetime
import genai_prices, model_prices

at, model = datetime(2026, 11, 20, 12, tzinfo=UTC), "claude-sonnet-4-5-20250929"
usage = genai_prices.Usage(input_tokens=300_000, output_tokens=0)
print(f"{genai_prices.calc_price(usage, model_ref=model, genai_request_timestamp=at).total_price:.2f}", end=", ")
print(f"{json.load(sys.stdin)['totals']['totalCost']:.2f}", end=", ")
print(f"{model_prices.cost(model, input_tokens=300_000, at=at):.2f}")
END
HOME=$work node_modules/.bin/ccusage daily --json --offline >ccusage.json
expect 'dollars by genai-prices, ccusage, model-prices' '1.80, 1.20, 0.90' "$(python ask.py <ccusage.json)"
