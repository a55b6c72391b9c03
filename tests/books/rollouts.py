"""Lines of a rollout of Codex that tell of a plan."""

from __future__ import annotations

import json
from typing import Any

from acp_proxy.core.windows import HOUR, SECOND
from harness.rows import NOON

FIVE = {"used_percent": 62.5, "window_minutes": 300, "resets_at": (NOON + 2 * HOUR) // SECOND}
WEEK = {"used_percent": 34, "window_minutes": 10080, "resets_at": (NOON + 48 * HOUR) // SECOND}
LIMITS = {"limit_id": "codex", "primary": FIVE, "secondary": WEEK, "credits": {"has_credits": False}}


def told(**limits: Any) -> bytes:
    payload = {"type": "token_count", "info": None, "rate_limits": LIMITS | limits}
    line = {"timestamp": "2026-11-21T12:00:00.000Z", "type": "event_msg", "payload": payload}
    return json.dumps(line).encode() + b"\n"
