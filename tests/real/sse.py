"""Server-sent events: what every streaming API of the model on loopback is made of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    data: bytes
    delay: float = 0.0  # seconds before it


def event(data: dict[str, Any], name: str | None = None, delay: float = 0.0) -> Event:
    head = f"event: {name}\n" if name else ""
    return Event(f"{head}data: {json.dumps(data)}\n\n".encode(), delay)
