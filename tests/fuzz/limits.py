"""How many inputs are tried, of each kind: `scripts/fuzz` asks for more."""

from __future__ import annotations

import os

from hypothesis import settings

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "150"))
FUZZ = settings(max_examples=EXAMPLES, deadline=None)
