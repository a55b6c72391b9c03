"""`acp-proxy import`: model calls from the session files of agents ("books"), as rows of the ledger.

A call becomes a row once: its id is made from what the agent calls it. A second import, another machine with the same
home, and a copy of a session add nothing. What a relay has metered is left out. The agents' files are only read.
"""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec import Struct

from acp_proxy.core.money import Money, plus
from acp_proxy.core.usage import Usage


class Tally(Struct):
    """What was found of one agent. Calls are counted once, in the first of these that fits."""

    files: int = 0
    unchanged: int = 0  # of the files: as they were at the last import, and not read again
    calls: int = 0  # new rows
    known: int = 0  # rows of an earlier import
    relayed: int = 0  # metered by a relay
    completed: int = 0  # relayed turns that were known in part
    waiting: int = 0  # so recent that the agent may not have finished writing them
    usage: Usage = Usage()  # of the new rows
    costs: tuple[Money, ...] = ()
    unpriced: int = 0  # new rows with tokens of which no price is known
    not_understood: Counter[str] = msgspec.field(default_factory=Counter)  # by reason

    def add(self, usage: Usage, costs: tuple[Money, ...], *, unpriced: bool) -> None:
        self.calls += 1
        self.usage += usage
        self.costs = plus(self.costs, costs)
        self.unpriced += unpriced
