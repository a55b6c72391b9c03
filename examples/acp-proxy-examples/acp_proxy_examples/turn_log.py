"""An observer: one line of JSON for each turn, appended to the file that `ACP_TURN_LOG` names."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from acp_proxy import Interceptor
from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Entry
from acp_proxy.core.events import Event, TurnMetered


class TurnLog(Interceptor):
    def __init__(self) -> None:
        self._path = os.environ.get("ACP_TURN_LOG")
        self._writer = ThreadPoolExecutor(max_workers=1)  # keeps the order of the turns

    def on_event(self, event: Event) -> Iterable[Effect]:
        if self._path and isinstance(event, TurnMetered):
            # The turn's last line waits for this method: write files in another thread.
            self._writer.submit(append, self._path, line_of(event.entry))
        return ()

    async def aclose(self) -> None:
        written = self._writer.submit(bool)  # runs after everything that was submitted before
        await asyncio.wrap_future(written)  # if this takes too long, acp-proxy ends without it


def line_of(entry: Entry) -> str:
    return json.dumps(
        {
            "session": entry.session,
            "kind": entry.kind,
            "model": entry.model,
            "tokens": entry.usage.total,
            "cost": {cost.currency: cost.text for cost in entry.costs},
        }
    )


def append(path: str, line: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
