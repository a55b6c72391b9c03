"""Answers the page's requests from one ledger as JSON. Lives in the ledger's thread; knows no HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from acp_proxy.budget import listing, on_plans
from acp_proxy.budget.accounts import accounts_of
from acp_proxy.budget.current_user import own_subject
from acp_proxy.config import Config
from acp_proxy.core.scope import Subject
from acp_proxy.ledger import LedgerForbiddenError, Query, captures
from acp_proxy.ledger.bill_sources import sources
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.places import journal_directories
from acp_proxy.ledger.sums.buckets import QUARTER_HOUR
from acp_proxy.serve import questions
from acp_proxy.serve.bills import bills
from acp_proxy.serve.coverage import coverage
from acp_proxy.serve.dead_proxies import DeadProxies
from acp_proxy.serve.freshness import Freshness
from acp_proxy.serve.periods import bounds_of
from acp_proxy.serve.plans import plans
from acp_proxy.serve.questions import FILTERED, choice, number, only
from acp_proxy.serve.running_turns import Running, attended_sessions, described, running_turns
from acp_proxy.serve.session_order import SORTS, Wanted
from acp_proxy.serve.sessions import RecentSessions, States
from acp_proxy.serve.spend import BY, spend
from acp_proxy.serve.sums import KeptSums
from acp_proxy.text import times

_BUDGETS_FRESH = times.SECOND  # they change with every hold, and many may look
_MOST_SESSIONS = 200
_MOST_KEPT = 100  # answers

Asked = Mapping[str, str]


class Views:
    """Each takes the parameters of a question. Raises BadQuestionError, and LedgerError."""

    def __init__(
        self,
        ledger: BudgetLedger,
        config: Config,
        environ: Mapping[str, str],
        clock: Callable[[], int] = time.time_ns,
        own: Subject | None = None,
    ) -> None:
        """`own` is who looks, where that is not the user of this process; then no journal of this machine is read."""
        self._ledger = ledger
        self._config = config
        self._clock = clock
        self._journals = journal_directories(environ) if own is None else ()
        self._zone = times.local_zone(environ)
        self._sums = KeptSums(ledger, config.identity.organisation)
        self._sessions = RecentSessions(ledger, config.identity.organisation)
        self._own = own or own_subject(config, None)  # where `serve` was started is nobody's project
        self._dead = DeadProxies(ledger, clock)
        self._freshness = Freshness(ledger, config.identity.organisation, clock)
        self._budgets = (0, b"")  # when they were asked for, and what was said
        self._kept: dict[tuple[object, ...], tuple[str, bytes]] = {}

    def close(self) -> None:
        self._ledger.close()

    def version(self) -> str:
        """Another one when rows were added, those of proxies that died since among them."""
        self._dead.take_over()
        return self._sums.version()

    def spend(self, asked: Asked) -> bytes:
        only(asked, ("range", "by", "tz", *FILTERED))
        period, by, where = questions.period(asked, "today"), choice(asked, "by", BY), questions.filters(asked)
        zone, now = questions.zone(asked, self._zone), self._clock()
        return self._unless_kept(
            ("spend", period, by, where, zone.name, now // QUARTER_HOUR),
            lambda: _json(spend(self._sums, period, by, zone, now, where)),
        )

    def sessions(self, asked: Asked) -> bytes:
        only(asked, ("limit", "before", "find", "sort", "range", "tz", *FILTERED))
        now, period = self._clock(), questions.period(asked, "all")
        since, until = bounds_of(period, questions.zone(asked, self._zone), now)
        wanted = Wanted(
            number(asked, "limit", 50, _MOST_SESSIONS),
            Query(since, until, questions.filters(asked)),
            choice(asked, "sort", SORTS),
            asked.get("find") or None,
            asked.get("before"),
        )
        return _json(self._sessions.page(wanted, now, self._states(), self.version()))

    def session(self, asked: Asked) -> bytes:
        only(asked, ("key",))
        return _json(self._sessions.one(asked.get("key", "")))

    def budgets(self, asked: Asked) -> bytes:
        only(asked)
        now = self._clock()
        if not 0 <= now - self._budgets[0] < _BUDGETS_FRESH:
            accounts = accounts_of(self._ledger, self._config.budgets, self._own, now)
            of_plans = on_plans.standings(self._ledger, self._config.plan_budgets, self._own, now)
            self._budgets = (now, listing.as_json(self._ledger.standing(accounts, now), of_plans).encode())
        return self._budgets[1]

    def bills(self, asked: Asked) -> bytes:
        """None where they are not for who asks, or are a hub's, which shows them itself."""
        only(asked)
        try:
            read, organisation = self._ledger.tables.read, self._config.identity.organisation
        except LedgerForbiddenError:
            return _json(bills((), {}, (), 0))
        kept, details = captures.latest(read, organisation), captures.details(read, organisation)
        return _json(bills(kept, details, sources(read, organisation), self._clock()))

    def coverage(self, asked: Asked) -> bytes:
        only(asked, ("range", "tz", *FILTERED))
        period, where = questions.period(asked, "today"), questions.filters(asked)
        zone, now = questions.zone(asked, self._zone), self._clock()
        return self._unless_kept(
            ("coverage", period, where, zone.name, now // QUARTER_HOUR),
            lambda: _json(coverage(self._sums, period, zone, now, where)),
        )

    def plans(self, asked: Asked) -> bytes:
        only(asked, ("agent", "user"))
        found = plans(
            self._ledger, self._config.identity.organisation, self._clock(), asked.get("user"), asked.get("agent")
        )
        return _json(found)

    def live(self, asked: Asked) -> bytes:
        only(asked)
        running = [described(turn, self._ledger) for turn in self._running()]
        servers = {"standby": self._freshness.standby(), "set_back": self._freshness.set_back()}
        return _json({"version": self.version(), "running": running, **servers})

    def health(self) -> str:
        """That the ledger answers, and what it is where it is not the one that is written to."""
        self.version()
        said = self._freshness.standby()
        return f"ok: {said}" if said else "ok"

    def _running(self) -> list[Running]:
        return running_turns(self._ledger, self._config.identity.organisation, self._journals, self._clock())

    def _states(self) -> States:
        attended = attended_sessions(self._ledger, self._config.identity.organisation, self._journals)
        return States(frozenset(turn.key for turn in self._running()), attended)

    def _unless_kept(self, question: tuple[object, ...], answer: Callable[[], bytes]) -> bytes:
        """The answer of before, when nothing was added since."""
        version = self.version()
        kept = self._kept.get(question)
        if kept is not None and kept[0] == version:
            return kept[1]
        found = answer()
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[question] = (version, found)
        return found


VIEWS: Mapping[str, Callable[[Views, Asked], bytes]] = {
    "/api/spend": Views.spend,
    "/api/sessions": Views.sessions,
    "/api/session": Views.session,
    "/api/budgets": Views.budgets,
    "/api/bills": Views.bills,
    "/api/coverage": Views.coverage,
    "/api/plans": Views.plans,
    "/api/live": Views.live,
}


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # a figure beyond 64 bits: another program has written those that it is the sum of
        return json.dumps(value).encode()
