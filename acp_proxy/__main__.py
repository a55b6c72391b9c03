"""The `acp-proxy` command."""

from __future__ import annotations

import sys

from acp_proxy import start


def main() -> int:
    return start.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
