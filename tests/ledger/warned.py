"""What a ledger warns of, kept."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Warnings:
    """Called as a `Warn`; keeps what it is told."""

    told: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, event: str, **fields: object) -> None:
        with self._changed:
            self.told.append((event, fields))
            self._changed.notify_all()

    def wait(self, event: str) -> bool:
        """Until the event is told; False when it is not, for long."""
        with self._changed:
            return self._changed.wait_for(lambda: event in self.events, timeout=30)

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.told]
