"""acp-proxy's own relay with nobody to tell: no interceptor and no ledger, so what these cost is the difference."""

import asyncio
import sys
import time
from functools import partial

from acp_proxy.config import load
from acp_proxy.config.applied import catalog_of
from acp_proxy.core.conversation import Conversation
from acp_proxy.core.meter import Meter
from acp_proxy.core.traffic import Traffic
from acp_proxy.dispatch import Dispatcher
from acp_proxy.relay import Relay, run
from acp_proxy.system.ids import uuid7
from acp_proxy.system.spawn import Started, hold_standard_descriptors, spawn
from acp_proxy.wiring import LATER


def unsaid(level: str, event: str, **fields: object) -> None:
    """A log that nobody reads."""


async def relay(started: Started) -> int:
    traffic = Traffic()
    later = partial(asyncio.get_running_loop().call_later, LATER)
    meter = Meter(catalog_of(load({}, {})), uuid7)
    dispatcher = Dispatcher(
        Conversation(uuid7), meter, [], clock=time.time_ns, log=unsaid, later=later, traffic=traffic
    )
    status = await Relay(started, dispatcher, traffic=traffic).run()
    await dispatcher.aclose()
    return status


hold_standard_descriptors()
agent = spawn(sys.argv[sys.argv.index("--") + 1 :])
sys.exit(run(lambda: relay(agent)))
