"""The `acp-proxy` command."""

from __future__ import annotations

import sys

from acp_proxy.startup import start


def main() -> int:
    try:
        return start.main(sys.argv[1:])
    except KeyboardInterrupt:  # Ctrl-C while a command is still imported; `run` leaves the signal to the system
        return 130


if __name__ == "__main__":
    sys.exit(main())
