"""A relay that inspects nothing: `plain_relay.py [--grace SECONDS] [--asyncio] -- AGENT...`."""

from __future__ import annotations

import os
import sys

from acp_proxy.system.spawn import hold_standard_descriptors, spawn


def main(argv: list[str]) -> None:
    ours, agent = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    hold_standard_descriptors()
    started = spawn(agent)
    from acp_proxy.relay import GRACE, Relay, run
    from tests.agents.forwarding import Forwarding

    if "--asyncio" in ours:
        sys.modules["uvloop"] = None  # type: ignore[assignment]  # as where it is not installed
    grace = float(ours[ours.index("--grace") + 1]) if "--grace" in ours else GRACE
    os._exit(run(lambda: Relay(started, Forwarding(), grace=grace).run()))


if __name__ == "__main__":
    main(sys.argv[1:])
