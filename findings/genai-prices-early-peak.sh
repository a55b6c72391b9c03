#!/usr/bin/env bash
# genai-prices 0.2.3: DeepSeek's peak price of September is asked for a call of August, when there was no peak price.
# Guess: the table knows that prices changed on 2026-08-17 and 2026-09-10, so a call of 2026-08-10 costs the price of then.
# Seen: at noon it does, 0.14. At 02:00, which is a peak hour since September, it costs 0.30: a price with hours is taken
# whatever the date is. model-prices 0.0.5 says 0.14 for both. Sundays, which have no peak hours there, are peak here.
source "$(dirname "$0")/common.sh"
install genai-prices==0.2.3 model-prices==0.0.5
cat >ask.py <<'END'
from datetime import datetime
import genai_prices, model_prices

for at in ("2026-08-10T12:00:00+00:00", "2026-08-10T02:00:00+00:00", "2026-11-22T02:00:00+00:00"):
    one = genai_prices.calc_price(
        genai_prices.Usage(input_tokens=1_000_000), model_ref="deepseek-v4-flash", provider_id="deepseek",
        genai_request_timestamp=datetime.fromisoformat(at),
    ).total_price
    other = model_prices.cost("deepseek-v4-flash", input_tokens=1_000_000, at=at)
    print(f"{at[5:16]} {one:.2f} {other:.2f}", end="; ")
END
expect 'a million tokens, by genai-prices and by model-prices' \
    '08-10T12:00 0.14 0.14; 08-10T02:00 0.30 0.14; 11-22T02:00 0.30 0.15; ' "$(python ask.py)"
