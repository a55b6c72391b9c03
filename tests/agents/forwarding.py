"""An inspector that forwards all and reads nothing."""

from __future__ import annotations

from collections.abc import Callable

from acp_proxy.core.events import Side
from acp_proxy.relay.inspector import Sink


class Forwarding:
    def attach(self, to_client: Sink, to_agent: Sink) -> None:
        self.to_client, self.to_agent = to_client, to_agent

    def scan(self, sender: Side) -> Callable[[bytes], bool]:
        def seen_to(run: bytes) -> bool:
            self.lines(sender, run)
            return False

        return seen_to

    def lines(self, sender: Side, run: bytes) -> None:
        (self.to_agent if sender is Side.CLIENT else self.to_client).write(run)

    def streams(self, sender: Side, head: bytes) -> bool:
        return True

    def gives_up(self, sender: Side, size: int) -> bool:
        return True

    def part(self, sender: Side, data: bytes, *, last: bool) -> None:
        self.lines(sender, data)

    def ended(self, sender: Side) -> None:
        pass

    def holding(self) -> int:
        return 0
