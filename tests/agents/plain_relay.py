"""A relay that inspects nothing: `plain_relay.py [-h] -- AGENT...` forwards bytes and runs the agent, no more."""

from __future__ import annotations

import os
import sys

from acp_proxy.spawn import spawn


def main() -> None:
    started = spawn(sys.argv[sys.argv.index("--") + 1 :])
    from acp_proxy.relay import Relay, run
    from tests.agents.forwarding import Forwarding

    os._exit(run(lambda: Relay(started, Forwarding()).run()))


if __name__ == "__main__":
    main()
