"""Usage as a list for a program that embeds the relay, and a callback that is called when it grows."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from acp_proxy.core import usage
from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import CostSource, Entry, Kind, UsageSource
from acp_proxy.core.events import Event, TurnMetered
from acp_proxy.core.money import Money, summed
from acp_proxy.interceptor import Interceptor
from acp_proxy.log import Log


class Usage(usage.Usage, frozen=True):
    """Tokens of one turn, or of one of its models where it used several; every token is in exactly one counter.

    `kind` is "turn" for a prompt, "compaction" for a compaction without a prompt; the others are "autonomous",
    "subagent" and "side". `turn` is the id of the ledger's row. `costs` is empty where the cost is not known. Added
    up, what differs is None.
    """

    model: str | None = None
    kind: Kind | None = None
    session: str | None = None
    turn: str | None = None
    costs: tuple[Money, ...] = ()
    usage_source: UsageSource | None = None
    cost_source: CostSource | None = None

    @property
    def cost(self) -> dict[str, str]:
        """Exact decimal text by currency."""
        return {money.currency: money.text for money in self.costs}

    def __add__(self, other: usage.Usage) -> Usage:
        tokens = usage.Usage.__add__(self, other)
        both = other if isinstance(other, Usage) else Usage()
        if self == Usage():  # `sum(usages, Usage())` begins with nothing, and nothing has no model
            return _of(tokens, **{name: getattr(both, name) for name in _FACTS}, costs=both.costs)
        same = {name: getattr(self, name) if getattr(self, name) == getattr(both, name) else None for name in _FACTS}
        return _of(tokens, **same, costs=summed((*self.costs, *both.costs)))


OnUsagesChange = Callable[[list[Usage]], Awaitable[object] | object]
_FACTS = ("model", "kind", "session", "turn", "usage_source", "cost_source")


class Usages(Interceptor):
    """`usages` grows by one for each turn, or for each model of a turn."""

    event_types = frozenset({TurnMetered})

    def __init__(self, tell: OnUsagesChange | None, log: Log) -> None:
        self.usages: list[Usage] = []
        self._tell = tell
        self._log = log
        self._telling: set[asyncio.Task[None]] = set()

    def on_event(self, event: Event) -> Iterable[Effect]:
        if isinstance(event, TurnMetered):
            self.usages += _usages(event.entry)
            if self._tell:
                asyncio.get_running_loop().call_soon(self._changed, self._tell, event.entry.session)
        return ()

    async def aclose(self) -> None:
        """The last change is told too, as long as that takes no more than a second."""
        await asyncio.sleep(0)
        if self._telling:
            await asyncio.wait(self._telling, timeout=1)

    def _changed(self, tell: OnUsagesChange, session: str) -> None:
        try:
            told = tell([each for each in self.usages if each.session == session])
        except Exception as error:  # the one boundary: a listener's fault is not the relay's
            self._failed(error)
            return
        if inspect.isawaitable(told):
            task = asyncio.ensure_future(self._finish(told))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _finish(self, told: Awaitable[object]) -> None:
        try:
            await told
        except Exception as error:  # the same boundary
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._log("error", "on_usages_change failed", error=f"{type(error).__name__}: {error}")


def _usages(entry: Entry) -> list[Usage]:
    return [
        _of(
            line.usage,
            model=line.model,
            kind=entry.kind,
            session=entry.session,
            turn=entry.id,
            costs=() if line.cost is None else (line.cost,),
            usage_source=entry.usage_source,
            cost_source=entry.cost_source,
        )
        for line in entry.lines
    ]


def _of(tokens: usage.Usage, **facts: Any) -> Usage:
    return Usage(tokens.input, tokens.cached_read, tokens.cached_write, tokens.output, tokens.thought, **facts)
