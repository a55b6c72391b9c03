"""The views of `serve` for each who looks, in threads of their own: reports of a year must not hold up a prompt."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import orjson

from acp_proxy.config import Config
from acp_proxy.core.money import exact_text
from acp_proxy.core.scope import Subject
from acp_proxy.hub.api.requests import may_decide
from acp_proxy.hub.identity import Identity, Role
from acp_proxy.hub.page.budgets import budgets_for
from acp_proxy.hub.page.seen import SeenLedger
from acp_proxy.hub.policy import CurrentPolicies
from acp_proxy.ledger import Warn, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.hub import asking
from acp_proxy.ledger.in_thread import InThread
from acp_proxy.ledger.sql_ledger import SqlLedger
from acp_proxy.serve.questions import only
from acp_proxy.serve.views import VIEWS as OF_ANY
from acp_proxy.serve.views import Asked, Views
from acp_proxy.text.times import milliseconds

_PATIENCE = 2.0  # seconds that a call of the ledger waits for writers
_DEADLINE = 10.0  # seconds that a question may take, its wait included
_THREADS = 2
_MOST = 50  # people whose last answers are kept, in each thread

_Person: TypeAlias = tuple[str, str | None, Role, tuple[str, ...]]
View = Callable[["SeenViews", Asked], bytes]


class Figures:
    """What the page of one hub shows. Raises LedgerError, BadQuestionError and RefusedError."""

    def __init__(
        self, config: Config, environ: Mapping[str, str], warn: Warn, clock: Callable[[], int] = time.time_ns
    ) -> None:
        def opened() -> _OfEach:
            ledger = open_ledger(config.ledger.url, patience=_PATIENCE, warn=warn, journals=(), clock=clock)
            return _OfEach(cast(SqlLedger, ledger), config, environ, clock)

        self._threads = [
            InThread(opened, deadline=_DEADLINE, name=f"acp-proxy hub page {number}") for number in range(_THREADS)
        ]

    async def ask(self, who: Identity, view: View, asked: Asked) -> bytes:
        thread = self._threads[hash(who.user) % _THREADS]  # the one that knows them
        return await thread.ask(lambda views: view(views.of(who), asked))

    def close(self, within: float) -> None:
        for thread in self._threads:
            thread.close(within / _THREADS)


class SeenViews(Views):
    """Those of `serve`, of what one person sees; budgets are those of the policy."""

    def __init__(
        self,
        who: Identity,
        ledger: SqlLedger,
        policies: CurrentPolicies,
        config: Config,
        environ: Mapping[str, str],
        clock: Callable[[], int],
    ) -> None:
        seen = SeenLedger(ledger, who, policies, clock)
        own = Subject(who.organisation, who.user, who.team, None, "", "")
        super().__init__(cast(BudgetLedger, seen), config, environ, clock, own)
        self._who = who
        self._seen = seen
        self._policies = policies
        self._of_all = ledger

    def budgets(self, asked: Asked) -> bytes:
        only(asked)
        return budgets_for(self._who, self._own, self._of_all, self._seen, self._policies, self._clock())

    def requests(self, asked: Asked) -> bytes:
        """For more, that nobody has decided on; `decides`: whether who looks may."""
        only(asked)
        found = self._seen.call(asking.REQUESTS, asking.Wanted("pending"))
        told = [
            {
                "id": each.wish.id,
                "user": each.user,
                "team": each.team,
                "budget": each.wish.budget,
                "amount": exact_text(each.wish.amount, each.wish.unit),
                "unit": each.wish.unit,
                "why": each.wish.why,
                "asked_at": milliseconds(each.at),
                "decides": may_decide(self._who, each),
            }
            for each in found
        ]
        return orjson.dumps({"requests": told})


class _OfEach:
    """Views of one ledger by who looks; in the ledger's thread."""

    def __init__(self, ledger: SqlLedger, config: Config, environ: Mapping[str, str], clock: Callable[[], int]) -> None:
        self._ledger = ledger
        self._config = config
        self._environ = environ
        self._clock = clock
        self._policies = CurrentPolicies()
        self._views: OrderedDict[_Person, SeenViews] = OrderedDict()

    def of(self, who: Identity) -> SeenViews:
        """A role or a team that has changed is another person's view."""
        person = (who.user, who.team, who.role, who.teams_led)
        if person not in self._views:
            self._views[person] = SeenViews(who, self._ledger, self._policies, self._config, self._environ, self._clock)
        self._views.move_to_end(person)
        if len(self._views) > _MOST:
            self._views.popitem(last=False)
        return self._views[person]

    def close(self) -> None:
        self._ledger.close()


VIEWS: Mapping[str, View] = {**OF_ANY, "/api/budgets": SeenViews.budgets, "/api/requests": SeenViews.requests}
