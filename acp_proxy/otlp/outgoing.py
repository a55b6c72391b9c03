"""What is to be sent next, out of one ledger. Lives in that ledger's thread; knows no network.

A batch that was sent is struck off in the ledger by `settle`. Until then the same is made again, with the same ids.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Struct, field

from acp_proxy import __version__
from acp_proxy.catalog import Catalog
from acp_proxy.config import Config
from acp_proxy.core.digest import digest
from acp_proxy.core.entry import Work
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger import Row
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.exports import Due, Identity, Kind
from acp_proxy.metrics import Exporter
from acp_proxy.metrics.exposition import AnyFamily, Family
from acp_proxy.otlp import deltas, gen_ai
from acp_proxy.otlp.common import Source
from acp_proxy.otlp.gen_ai import Histograms
from acp_proxy.otlp.logs import Record, Records
from acp_proxy.otlp.metrics import DELTA, Interval, metrics
from acp_proxy.otlp.providers import provider
from acp_proxy.otlp.settings import OtlpSettings, Signal, Target
from acp_proxy.otlp.spans import Spans
from acp_proxy.system.decoding import json_decoder

LEASE = 120 * SECOND  # longer than a round and an attempt

_SCOPE = "acp_proxy"
_AT_ONCE = 1000  # turns
# What is kept in the ledger, by name.
_HISTOGRAMS, _STANDING, _UNDERWAY = "histograms", "standing", "underway"
_OF_TRACES: tuple[Kind, ...] = ("turn",)
_OF_LOGS: tuple[Kind, ...] = ("crash", "correction", "grant", "notice", "plan")


class Batch(Struct, frozen=True):
    """One request. `done` and `states` are what the ledger is told when it was sent."""

    content: bytes
    items: int
    done: tuple[Due, ...] = ()
    states: Mapping[str, str] = field(default_factory=dict)


class Underway(Struct, frozen=True):
    """Differences that were made and not confirmed, and where the counters stand with them."""

    content: bytes
    standing: str

    @classmethod
    def of(cls, state: str | None) -> Underway | None:
        try:
            return json_decoder(Underway).decode(state) if state else None
        except msgspec.MsgspecError:
            return None

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()


class Outgoing:
    """Of one organisation. Methods are called in the ledger's thread, and raise LedgerError.

    It outlives the ledger, which may be opened anew between two of them.
    """

    def __init__(
        self,
        exporter: Exporter,
        settings: OtlpSettings,
        config: Config,
        catalog: Catalog,
        clock: Callable[[], int],
    ) -> None:
        self._exporter = exporter
        self._settings = settings
        self._organisation = config.identity.organisation
        self._clock = clock
        self._holder = os.urandom(8).hex()
        self._held_until = 0
        self._name = name_of(settings.targets)
        self._zipped = {target.signal: target.gzip for target in settings.targets}
        self._began = clock()
        self._identity: Identity | None = None
        shown = config.metrics
        people = (("user",) if shown.user_label else ()) + (("project",) if shown.project_label else ())
        self._provider = partial(provider, catalog)
        self._spans = Spans(self._provider, people)
        self._histograms = Histograms(self._provider, tokens=settings.token_histogram) if settings.gen_ai else None
        self._records = Records(people)

    def is_ours(self, ledger: BudgetLedger) -> bool:
        """Whether it is this process that sends: of several that send the same, one does."""
        exports, now = ledger.exports, self._clock()
        if self._identity is None:
            self._identity = exports.begin(self._organisation, self._name, now)
            self._forget_unwanted(ledger)
        if self._held_until - now < LEASE // 2 or now + LEASE < self._held_until:  # the latter by a clock that was set
            is_held = exports.hold(self._organisation, self._name, self._holder, now, now + LEASE)
            self._held_until = now + LEASE if is_held else 0
        return self._held_until > 0

    def leave(self, ledger: BudgetLedger) -> None:
        """Let another process send from now on, if it was this one."""
        now = self._clock()
        ledger.exports.hold(self._organisation, self._name, self._holder, now, now)

    def settle(self, ledger: BudgetLedger, batch: Batch) -> None:
        ledger.exports.settle(self._organisation, self._name, batch.done, batch.states)

    def metrics(self, ledger: BudgetLedger, _: int) -> Batch | None:
        """All metrics as they are now; None where another process sends them."""
        if not self.is_ours(ledger):
            return None
        self._forget_unwanted(ledger)
        now, readings = self._clock(), self._exporter.readings(ledger)
        families = self._exporter.families(readings)
        of_turns = list[AnyFamily]()
        since = self._known.since
        if self._histograms is not None:
            families += gen_ai.counters(readings, self._provider)
            state = self._state(ledger, _HISTOGRAMS)
            of_turns, since = list(self._histograms.families(state)), self._histograms.since(state, now)
        if self._settings.delta:
            return self._differences(ledger, [*families, *of_turns], now)
        made = [
            *metrics(families, Interval(self._known.since, now)),
            *metrics(of_turns, Interval(since, now)),
            *self._own(now, up=True),
        ]
        return Batch(self._packed("metrics", made), len(made))

    def _differences(self, ledger: BudgetLedger, families: Sequence[AnyFamily], now: int) -> Batch:
        """What came since what was confirmed last; what is on its way already goes again as it was."""
        on_its_way = Underway.of(self._state(ledger, _UNDERWAY))
        if on_its_way is None:
            before = deltas.Standing.of(self._state(ledger, _STANDING))
            interval = Interval(self._known.since if before is None else before.at, now)
            gauges = [each for each in self._exporter.own_families(up=True) if isinstance(each, Family)]
            since = deltas.differences(families, before)
            content = self._packed("metrics", [*metrics(since, interval, DELTA), *metrics(gauges, interval)])
            on_its_way = Underway(content, deltas.standing(families, now, before).text)
            self.settle(ledger, Batch(b"", 0, states={_UNDERWAY: on_its_way.text}))
        return Batch(on_its_way.content, 1, states={_STANDING: on_its_way.standing, _UNDERWAY: ""})

    def _state(self, ledger: BudgetLedger, what: str) -> str | None:
        return ledger.exports.state(self._organisation, self._name, what)

    def metrics_without_ledger(self) -> Batch | None:
        """That it does not answer. None where it never did: then it is not known who we are."""
        if self._identity is None:
            return None
        made = self._own(self._clock(), up=False)
        return Batch(self._packed("metrics", made), len(made))

    def traces(self, ledger: BudgetLedger, most: int) -> Batch | None:
        """Spans of so many turns; None where there are none, or another process sends them."""
        due = self._due(ledger, _OF_TRACES, most)
        if not due:
            return None
        ids = [each.key for each in due]
        work = ledger.exports.work(self._organisation, ids)
        rows = ledger.recent.some(self._organisation, ids)
        made = [span for row in rows for span in self._spans.of(row, work.get(row.entry.id))]
        return Batch(self._packed("traces", made), len(made), tuple(due), self._observed(ledger, rows, work))

    def _observed(self, ledger: BudgetLedger, rows: Sequence[Row], work: Mapping[str, Work]) -> Mapping[str, str]:
        if self._histograms is None:
            return {}
        return {_HISTOGRAMS: self._histograms.after(self._state(ledger, _HISTOGRAMS), rows, work, self._clock())}

    def logs(self, ledger: BudgetLedger, most: int) -> Batch | None:
        """Log records of so many things that happened, as `traces`."""
        due = self._due(ledger, _OF_LOGS, most)
        if not due:
            return None
        now = self._clock()
        made = [record.encoded(now) for record in self._happened(ledger, due)]
        return Batch(self._packed("logs", made), len(made), tuple(due))

    def _due(self, ledger: BudgetLedger, kinds: Sequence[Kind], most: int) -> list[Due]:
        return ledger.exports.due(self._organisation, self._name, kinds, most) if self.is_ours(ledger) else []

    def _happened(self, ledger: BudgetLedger, due: Sequence[Due]) -> list[Record]:
        """By time. What is gone meanwhile is left out."""
        of = {kind: [each.key for each in due if each.kind == kind] for kind in _OF_LOGS}
        found = [self._records.notice(each) for each in ledger.outbox.noted(self._organisation, of["notice"])]
        found += self._of_turns(ledger, of["crash"], [json.loads(key) for key in of["correction"]])
        if of["grant"]:
            wanted = set(of["grant"])
            granted = ledger.grants(self._organisation)
            found += [self._records.grant(grant) for grant in granted if grant.id in wanted]
        for key in of["plan"]:
            user, agent, window, at = json.loads(key)
            changes = ledger.plan_changes(self._organisation, at, at + 1, user)
            found += [self._records.plan(each) for each in changes if (each.agent, each.told.window) == (agent, window)]
        return sorted(found, key=lambda record: record.at)

    def _of_turns(
        self, ledger: BudgetLedger, crashed: Sequence[str], corrected: Sequence[tuple[str, int, int]]
    ) -> Iterator[Record]:
        """`corrected` are ids with the number and time of a correction; the figures are the newest."""
        ids = sorted({*crashed, *(turn for turn, _, _ in corrected)})
        if not ids:
            return
        work = ledger.exports.work(self._organisation, ids)
        rows = {row.entry.id: row for row in ledger.recent.some(self._organisation, ids)}
        for turn in crashed:
            if turn in rows:
                yield self._records.crash(rows[turn], work.get(turn))
        for turn, number, at in corrected:
            if turn in rows:
                yield self._records.corrected(rows[turn], number, at, work.get(turn))

    def _forget_unwanted(self, ledger: BudgetLedger) -> None:
        """What is noted for signals that are not sent; histograms have turns all the same."""
        while "traces" not in self._zipped and self._histograms and (due := self._due(ledger, _OF_TRACES, _AT_ONCE)):
            ids = [each.key for each in due]
            work, rows = ledger.exports.work(self._organisation, ids), ledger.recent.some(self._organisation, ids)
            self.settle(ledger, Batch(b"", 0, tuple(due), self._observed(ledger, rows, work)))
        for signal, kinds in (("traces", _OF_TRACES), ("logs", _OF_LOGS)):
            if signal not in self._zipped:
                ledger.exports.drop(self._organisation, self._name, kinds)

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
