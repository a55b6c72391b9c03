"""Loads what the first session will need as soon as the agent has started, in a thread.

A client may open a session hours later, and acp-proxy may be updated before that: the process would go on with files of
two versions, or find none. It waits until the agent has answered for the first time, which needs the processors until
then, and sets no timer, for a relay at rest does not wake up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, Initialized
from acp_proxy.interceptor import Interceptor


class EarlyLoad(Interceptor):
    """`load` is called once, in a thread."""

    event_types = frozenset({Initialized})

    def __init__(self, load: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=load, name="acp-proxy loading", daemon=True)

    def on_event(self, event: Event) -> Iterable[Effect]:  # noqa: ARG002  it sees one kind only
        if self._thread.ident is None:
            with suppress(RuntimeError):  # no thread can be started: the first session waits for it
                self._thread.start()
        return ()
