"""`python -m bench.hub_writer URL NUMBER SECONDS PAUSE`: one of many proxies that hold and append at a ledger.

When it is ready it says so, and begins at a line on stdin. Between two turns it pauses so many seconds. Prints as JSON
the seconds that each prompt waited.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing

from acp_proxy.ledger import open_ledger
from bench.far_writer import Writer, is_ready

_APART = 64  # begin at as many moments of the first pause: people do not all press Enter at once


def main() -> None:
    _, url, number, seconds, pause = sys.argv
    with closing(open_ledger(url, patience=60, journals=())) as ledger:
        writer = Writer(ledger, int(number))
        for _ in range(3):  # what its first turns alone have to do
            writer.turn(held=True)
        is_ready()
        writer.waits = []
        time.sleep(float(pause) * (int(number) % _APART) / _APART)
        ends = time.monotonic() + float(seconds)
        while time.monotonic() < ends:
            writer.turn(held=True)
            time.sleep(float(pause))
        json.dump(writer.waits, sys.stdout)


if __name__ == "__main__":
    main()
