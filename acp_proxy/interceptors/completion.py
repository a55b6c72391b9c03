"""Has turns completed that their agent told in part, from what it recorded itself: some seconds after their end, in a
thread of its own. No line waits for that, and no row does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Entry, Origin
from acp_proxy.core.events import CostsCorrected, Event, TurnMetered
from acp_proxy.core.money import Money, summed
from acp_proxy.interceptor import Interceptor
from acp_proxy.ledger import LedgerUnavailableError, NoLedgerError, Row

# Seconds after which an agent has written down what it did, and the ledger has the row; and again if they have not,
# or the ledger cannot be used.
_SETTLED = (3.0, 10.0, 30.0)

Complete = Callable[[Origin, str], Iterable[tuple[Row, Row]]]  # a session's rows as they were, and as they are now


class Completion(Interceptor):
    """`complete` reads files and writes to a ledger; what it raises is told to `warn` once. `has_book` says of whom
    there are any.

    `later` (seconds, function) and `announce` are of the relay's thread, `soon` brings a function there from another.
    """

    event_types = frozenset({TurnMetered})

    def __init__(
        self,
        complete: Complete,
        has_book: Callable[[Origin], bool],
        origin_of: Callable[[str], Origin],
        announce: Callable[[CostsCorrected], None],
        *,
        later: Callable[[float, Callable[[], object]], object],
        soon: Callable[[Callable[[], object]], object],
        clock: Callable[[], int],
        warn: Callable[..., None],
    ) -> None:
        self._complete = complete
        self._has_book = has_book
        self._origin_of = origin_of
        self._announce = announce
        self._later = later
        self._soon = soon
        self._clock = clock
        self._warn = warn
        self._one_at_a_time = threading.Lock()
        self._told: set[str] = set()

    def on_event(self, event: Event) -> Iterable[Effect]:
        if isinstance(event, TurnMetered) and self._may_be_completed(event.entry):
            self._wait(event.entry, 0)
        return ()

    def _may_be_completed(self, entry: Entry) -> bool:
        told_in_part = entry.kind == "turn" and entry.usage_source != "agent"
        return told_in_part and self._has_book(self._origin_of(entry.session))

    def _wait(self, turn: Entry, tries: int) -> None:
        self._later(_SETTLED[tries], partial(self._begin, turn, tries))

    def _begin(self, turn: Entry, tries: int) -> None:
        look = (turn, tries, self._origin_of(turn.session))
        with suppress(RuntimeError):  # no thread can be started: an import completes it
            threading.Thread(target=self._look, args=look, name="acp-proxy books", daemon=True).start()

    def _look(self, turn: Entry, tries: int, origin: Origin) -> None:
        corrected: list[tuple[Row, Row]] = []
        try:
            with self._one_at_a_time:
                corrected += self._complete(origin, turn.session)
        except (LedgerUnavailableError, NoLedgerError) as error:
            self._tell(partial(self._not_now, turn, tries, f"{type(error).__name__}: {error}"))
            return
        except Exception as error:  # the one boundary: it only looks, and rows stay as they are
            self._tell(partial(self._give_up, f"{type(error).__name__}: {error}"))
            return
        self._tell(partial(self._looked, turn, tries, corrected))

    def _tell(self, what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has ended in the meantime
            self._soon(what)

    def _not_now(self, turn: Entry, tries: int, reason: str) -> None:
        """The ledger is busy, or it is new and still being made."""
        if tries + 1 < len(_SETTLED):
            self._wait(turn, tries + 1)
        else:
            self._give_up(reason)

    def _give_up(self, reason: str) -> None:
        """A ledger may not let this user correct rows: that is told once, and an import completes them."""
        if reason not in self._told:
            self._told.add(reason)
            self._warn("books.not_completed", error=reason)

    def _looked(self, turn: Entry, tries: int, corrected: Sequence[tuple[Row, Row]]) -> None:
        if by := difference(corrected):
            self._announce(CostsCorrected(self._clock(), turn.session, by))
        if tries + 1 < len(_SETTLED) and all(before.entry.id != turn.id for before, _ in corrected):
            self._wait(turn, tries + 1)


def difference(corrected: Sequence[tuple[Row, Row]]) -> tuple[Money, ...]:
    """How much more, or less, these rows cost now."""
    more = [cost for _, after in corrected for cost in after.entry.costs]
    less = [Money(-cost.nano, cost.currency) for before, _ in corrected for cost in before.entry.costs]
    return tuple(cost for cost in summed([*more, *less]) if cost.nano)
