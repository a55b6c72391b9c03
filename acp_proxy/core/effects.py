"""What an interceptor asks the relay to do: carried out in order, or dropped when that side is gone."""

from __future__ import annotations

from dataclasses import dataclass

from acp_proxy.core.events import Side


@dataclass(frozen=True, slots=True)
class Send:
    """Write a line of the proxy's own to one side, between whole lines; `line` is JSON without a newline inside.

    Caused by a message that ends a turn it goes out before that message, otherwise after it.
    """

    to: Side
    line: bytes


Effect = Send  # a union when budgets need more
