"""An observer: one line of JSON for each turn, appended to the file that `ACP_TURN_LOG` names."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable

from acp_proxy import Interceptor
from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Entry
from acp_proxy.core.events import Event, TurnMetered


class TurnLog(Interceptor):
    def __init__(self) -> None:
        self._path = os.environ.get("ACP_TURN_LOG")
        self._writing: set[asyncio.Task[None]] = set()

    def on_event(self, event: Event) -> Iterable[Effect]:
        if self._path and isinstance(event, TurnMetered):
            # This runs while the turn's last line waits: files are for another thread.
            task = asyncio.ensure_future(asyncio.to_thread(append, self._path, line_of(event.entry)))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)
        return ()

    async def aclose(self) -> None:
        await asyncio.gather(*self._writing)


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
