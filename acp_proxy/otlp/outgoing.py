"""What is to be sent next, out of one ledger. Lives in that ledger's thread; knows no network.

A batch that was sent is struck off in the ledger by `settle`. Until then the same is made again, with the same ids.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from acp_proxy import __version__
from acp_proxy.core.digest import digest
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.exports import Due, Identity
from acp_proxy.metrics import Exporter
from acp_proxy.otlp.common import Source
from acp_proxy.otlp.metrics import Interval, metrics
from acp_proxy.otlp.settings import OtlpSettings, Signal, Target

LEASE = 120 * SECOND  # longer than a round and an attempt

_SCOPE = "acp_proxy"


class Batch(Struct, frozen=True):
    """One request. `done` and `states` are what the ledger is told when it was sent."""

    content: bytes
    items: int
    done: tuple[Due, ...] = ()
    states: Mapping[str, str] = field(default_factory=dict)


class Outgoing:
    """Of one organisation. Methods are called in the ledger's thread, and raise LedgerError.

    It outlives the ledger, which may be opened anew between two of them.
    """

    def __init__(
        self,
        exporter: Exporter,
        settings: OtlpSettings,
        organisation: str,
        clock: Callable[[], int],
    ) -> None:
        self._exporter = exporter
        self._settings = settings
        self._organisation = organisation
        self._clock = clock
        self._holder = os.urandom(8).hex()
        self._name = name_of(settings.targets)
        self._zipped = {target.signal: target.gzip for target in settings.targets}
        self._began = clock()
        self._identity: Identity | None = None

    def is_ours(self, ledger: BudgetLedger) -> bool:
        """Whether it is this process that sends: of several that send the same, one does."""
        exports, now = ledger.exports, self._clock()
        if self._identity is None:
            self._identity = exports.begin(self._organisation, self._name, now)
        return exports.hold(self._organisation, self._name, self._holder, now, now + LEASE)

    def leave(self, ledger: BudgetLedger) -> None:
        """Let another process send from now on, if it was this one."""
        now = self._clock()
        ledger.exports.hold(self._organisation, self._name, self._holder, now, now)

    def settle(self, ledger: BudgetLedger, batch: Batch) -> None:
        ledger.exports.settle(self._organisation, self._name, batch.done, batch.states)

    def metrics(self, ledger: BudgetLedger) -> Batch | None:
        """All metrics as they are now; None where another process sends them."""
        if not self.is_ours(ledger):
            return None
        now = self._clock()
        families = self._exporter.families(ledger)
        made = [*metrics(families, Interval(self._known.since, now)), *self._own(now, up=True)]
        return Batch(self._packed("metrics", made), len(made))

    def metrics_without_ledger(self) -> Batch | None:
        """That it does not answer. None where it never did: then it is not known who we are."""
        if self._identity is None:
            return None
        made = self._own(self._clock(), up=False)
        return Batch(self._packed("metrics", made), len(made))

    def _own(self, now: int, *, up: bool) -> list[bytes]:
        """Of this process, since it began."""
        return list(metrics(self._exporter.own_families(up=up), Interval(self._began, now)))

    @property
    def _known(self) -> Identity:
        assert self._identity is not None  # noqa: S101  `is_ours` was asked
        return self._identity

    def _packed(self, signal: Signal, items: list[bytes]) -> bytes:
        resource = {"service.instance.id": self._known.instance, **self._settings.resource}
        content = Source(resource, _SCOPE, __version__).request(items)
        return gzip.compress(content, 1, mtime=0) if self._zipped[signal] else content


def name_of(targets: tuple[Target, ...]) -> str:
    """Of what is sent to the same places: two that send elsewhere do not know of each other. A digest tells no URL."""
    return digest("\n".join(f"{target.signal} {target.url}" for target in targets).encode(), 12)
