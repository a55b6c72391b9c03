"""Label values: the first ones of the ledger, and `other` for all further ones. Pure.

A value that was shown once is always shown, so that no series decreases because of another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from acp_proxy.ledger.sums.labels import Label
from acp_proxy.ledger.sums.tallies import OTHER
from acp_proxy.report import UNNAMED

MOST: Mapping[str, int] = {
    "agent": 100,
    "model": 200,
    "team": 100,
    "user": 1000,
    "project": 500,
    "client": 50,
    "currency": 20,
    "stop_reason": 30,
}
_NOTHING = {**UNNAMED, "client": "unknown", "stop_reason": "none"}  # in place of no value, as reports have it


class Labels:
    """`overflow` is how many values of each dimension are shown as `other`."""

    def __init__(self, known: Iterable[Label] = ()) -> None:
        self._shown: dict[str, dict[str | None, str]] = {name: {None: _NOTHING.get(name, "unknown")} for name in MOST}
        self.overflow = dict.fromkeys(MOST, 0)
        for label in known:
            shown = self._shown.get(label.dimension)
            if shown is None:
                continue
            if label.position and len(shown) <= MOST[label.dimension]:
                shown[label.value] = label.value
            else:
                self.overflow[label.dimension] += 1

    def of(self, dimension: str, value: str | None) -> str:
        return self._shown[dimension].get(value, OTHER)
