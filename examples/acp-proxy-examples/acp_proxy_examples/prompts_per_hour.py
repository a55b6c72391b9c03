"""An enforcer: refuses prompts beyond the number that `ACP_PROMPTS_PER_HOUR` allows, with an answer that says why."""

from __future__ import annotations

import os
import time
from collections import deque

from acp_proxy import Admitted, Interceptor, Refusal
from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import Request

HOUR = 3600.0


class PromptsPerHour(Interceptor):
    def __init__(self) -> None:
        self._allowed = int(os.environ.get("ACP_PROMPTS_PER_HOUR", "0"))
        self._admitted: deque[float] = deque()
        if self._allowed:
            self.request_methods = frozenset({"session/prompt"})  # only these wait for `admit`

    async def admit(self, sender: Side, request: Request) -> Refusal | Admitted | None:
        now = time.monotonic()
        while self._admitted and self._admitted[0] <= now - HOUR:
            self._admitted.popleft()
        if len(self._admitted) < self._allowed:
            self._admitted.append(now)
            return None
        minutes = -int((now - self._admitted[0] - HOUR) // 60)
        text = f"{self._allowed} prompts in an hour are enough; the next may go in {minutes} minutes."
        return Refusal(error={"code": -32603, "message": text, "data": {"details": text}})
