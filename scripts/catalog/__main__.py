"""Makes acp_proxy/catalog/catalog.json out of genai-prices and model-prices; --check says whether it is up to date.

Fails where the two disagree and scripts/catalog/decisions.toml does not say who is right and why, and where a decision
is no longer needed. Never reads the network or the clock.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from catalog import build

CATALOG = Path(__file__).parents[2] / "acp_proxy/catalog/catalog.json"
DECISIONS = Path(__file__).with_name("decisions.toml")


def main() -> int:
    parser = argparse.ArgumentParser("build-catalog", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file would change")
    options = parser.parse_args()
    try:
        text = build.catalog_text(DECISIONS.read_text(encoding="utf-8"))
    except build.DisagreementError as error:
        print(error, file=sys.stderr)
        return 1
    if options.check:
        current = CATALOG.read_text(encoding="utf-8") == text
        print(f"{CATALOG.name}: {'up to date' if current else 'out of date, run scripts/build-catalog'}")
        return 0 if current else 1
    CATALOG.write_text(text, encoding="utf-8")
    print(f"{CATALOG.name}: {text.count(chr(10))} lines, {len(text.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
