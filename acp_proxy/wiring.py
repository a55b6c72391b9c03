"""The only wiring: meter, ledger and interceptors around a dispatcher, as a configuration says."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from acp_proxy.config import Config
from acp_proxy.config.applied import billed_by, catalog_of, keeps_titles, profiles_of
from acp_proxy.core.conversation import Conversation
from acp_proxy.core.entry import Origin
from acp_proxy.core.meter import Meter
from acp_proxy.core.traffic import Traffic
from acp_proxy.dispatch import Dispatcher
from acp_proxy.interceptors.early_load import EarlyLoad
from acp_proxy.interceptors.expected_series import ExpectedSeries
from acp_proxy.interceptors.plans import Plans
from acp_proxy.interceptors.recorder import Recorder
from acp_proxy.interceptors.relay_counters import RelayCounters
from acp_proxy.interceptors.usage_updates import UsageUpdates
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.backends import backend_at
from acp_proxy.ledger.hub_address import is_hub
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.log import Log
from acp_proxy.plugins import installed
from acp_proxy.system.directories import state_directory
from acp_proxy.system.ids import uuid7
from acp_proxy.system.project import project_of

if TYPE_CHECKING:
    from acp_proxy.catalog import Catalog
    from acp_proxy.core.events import Event
    from acp_proxy.core.plans import PlanState, PlanWindow
    from acp_proxy.interceptor import Interceptor
    from acp_proxy.interceptors.budgets.rules import Ask
    from acp_proxy.ledger import Row
    from acp_proxy.ledger.budgets import BudgetLedger
    from acp_proxy.ledger.owners import Owner
    from acp_proxy.policy.following import Followed

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the second stands still in a sleeping Linux
LATER = 0.0105  # seconds until an update is looked into; out of step with agents that send one each millisecond


def wired(
    config: Config,
    command: Sequence[str],
    log: Log,
    observers: Sequence[Interceptor] = (),
    *,
    traffic: Traffic,
    books: bool = True,
) -> Dispatcher:
    """On the running loop. `observers` see each event once it is booked; `traffic` is the relay's; without `books`
    there is no ledger, and so nothing is enforced.
    """
    catalog = catalog_of(config)
    meter = Meter(
        catalog,
        uuid7,
        profiles=profiles_of(config),
        estimate=config.run.estimate,
        agent_name=config.run.agent,
        aliases=config.aliases,
    )
    interceptors: list[Interceptor] = [UsageUpdates(log), *observers, *installed(log)]
    if books:  # a row is safe before anything else is done about it; nothing is held for a prompt that others refuse
        first, last = _bookkeepers(
            config,
            command,
            catalog,
            log,
            traffic,
            lambda event: dispatcher.announce(event),
            lambda about, line: dispatcher.ask(about, line),
        )
        interceptors = [*first, *interceptors, *last]
    if log.takes("info"):  # most logs take warnings only, and then none of it is imported
        from acp_proxy.interceptors.decision_log import DecisionLog

        interceptors.append(DecisionLog(log, later=asyncio.get_running_loop().call_soon))
    dispatcher: Dispatcher = Dispatcher(
        Conversation(uuid7, _elapsed),
        meter,
        interceptors,
        clock=time.time_ns,
        log=log,
        later=partial(asyncio.get_running_loop().call_later, LATER),
        admission_timeout=config.ledger.admission_timeout,
        traffic=traffic,
    )
    return dispatcher


def _bookkeepers(
    config: Config,
    command: Sequence[str],
    catalog: Catalog,
    log: Log,
    traffic: Traffic,
    announce: Callable[[Event], None],
    ask: Ask,
) -> tuple[list[Interceptor], list[Interceptor]]:
    """The ledger's interceptors: those that stand before all others, and those behind them."""
    loop, organisation = asyncio.get_running_loop(), config.identity.organisation
    worker = LedgerWorker.at(
        config.ledger.url, os.environ, partial(log, "warning"), partial(_note_settings, config), loop.call_later
    )
    process = uuid7(time.time_ns())
    counted_by = None if config.run.budget is None else process  # rows name it where a budget is for one run
    central = _central(config, catalog, worker.owner) if is_hub(config.ledger.url) else None
    recorder = Recorder(
        worker,
        _origin(config, command),
        announce,
        agent=config.run.agent,
        project_of=None if config.identity.project else project_of,
        process=counted_by,
        titles=keeps_titles(config, config.ledger.url),
        billing_of=lambda agent: billed_by(config, agent).by,
        lease_of=central.lease_store.lease_of if central else lambda _turn, _session: None,
        later=loop.call_later,
    )
    counters = RelayCounters(worker, traffic, organisation, process, later=loop.call_later)
    expected = ExpectedSeries(worker, recorder.origin_of, catalog.concrete)
    said = config.plans
    plans = Plans(worker, recorder.origin_of, _plan_warning, thresholds=said.thresholds, in_editor=said.in_editor)
    budgets = _budgets(config, catalog, worker, recorder, counted_by, log, central, ask)
    completion = _completion(config, catalog, recorder, announce, log)
    early_load = EarlyLoad(partial(_load_the_rest, config, catalog))
    return [counters, recorder], [*budgets, plans, expected, *completion, early_load]


def _budgets(
    config: Config,
    catalog: Catalog,
    worker: LedgerWorker,
    recorder: Recorder,
    process: str | None,
    log: Log,
    central: Followed | None,
    ask: Ask,
) -> list[Interceptor]:
    """Without any budget, and without a hub that may have one, nothing of this is imported, and no prompt waits."""
    if not config.budgets and not config.plan_budgets and central is None:
        return []
    from acp_proxy.interceptors.budgets import Budgets, Rules

    rules = Rules(
        config.budgets,
        config.plan_budgets,
        central=central,
        process=process,
        style=config.refusal.style,
        ask=config.refusal.ask,
        ask_timeout=config.refusal.ask_timeout,
        on_unavailable=config.ledger.on_unavailable,
        estimate=config.run.estimate,
        asks=is_hub(config.ledger.url),
        timeout=config.ledger.admission_timeout,
        concrete=catalog.concrete,
        price=catalog.price,
    )
    enforcers: list[Interceptor] = []
    if config.plan_budgets or central is not None:
        from acp_proxy.interceptors.budgets.plan_limits import PlanLimits
        from acp_proxy.text import plan_budgets as texts
        from acp_proxy.text.times import system_zone

        zone = system_zone(os.environ)
        refusal, exceeded = partial(texts.refusal, zone=zone), partial(texts.exceeded, zone=zone)
        enforcers.append(PlanLimits(rules, worker, recorder, refusal, exceeded, log))
    if config.budgets or central is not None:
        enforcers.append(Budgets(rules, worker, recorder, uuid7, warn=partial(log, "warning"), ask=ask))
    return enforcers


def _central(config: Config, catalog: Catalog, owner: Owner) -> Followed:
    """What the hub's policy said last; it is asked for in the worker's thread, once the agent has started."""
    from acp_proxy.config.applied import prices_under
    from acp_proxy.policy.following import Followed

    unsaid = config.by_file["admin"].get(("ledger", "on_unavailable"), "lease")  # not the user's to weaken
    followed = Followed(
        config.ledger.url,
        state_directory(os.environ) / "hubs",
        unsaid,
        lambda policy: catalog.reprice(prices_under(config, policy.prices)),
        owner,
    )
    followed.read()
    return followed


def _completion(
    config: Config, catalog: Catalog, recorder: Recorder, announce: Callable[[Event], None], log: Log
) -> list[Interceptor]:
    if not config.books.complete:
        return []
    from acp_proxy.books.agents import family
    from acp_proxy.importing.agents import AGENTS, TELL_PLANS
    from acp_proxy.interceptors.completion import Completion
    from acp_proxy.interceptors.plans_of_books import PlansOfBooks

    def complete(origin: Origin, session: str) -> list[tuple[Row, Row]]:
        from acp_proxy.importing import late

        return late.complete(config, os.environ, catalog, time.time_ns(), origin, session)

    def windows(agent: str, session: str) -> list[PlanWindow]:
        from acp_proxy.importing import plans

        return plans.windows_of_session(agent, session, os.environ)

    loop, warn = asyncio.get_running_loop(), partial(log, "warning")
    return [
        PlansOfBooks(
            windows,
            lambda agent: family(agent) in TELL_PLANS,
            recorder.origin_of,
            announce,
            later=loop.call_later,
            soon=loop.call_soon_threadsafe,
            warn=warn,
        ),
        Completion(
            complete,
            lambda origin: family(origin.agent) in AGENTS,
            recorder.origin_of,
            announce,
            later=loop.call_later,
            soon=loop.call_soon_threadsafe,
            clock=time.time_ns,
            warn=warn,
        ),
    ]


def _plan_warning(state: PlanState, percent: int, now: int) -> str:
    from acp_proxy.text.plans import warning  # few are on a plan, and fewer near its end
    from acp_proxy.text.times import system_zone

    return warning(state, percent, now, system_zone(os.environ))


def _load_the_rest(config: Config, catalog: Catalog) -> None:
    """Loads what the first session would load; in a thread."""
    with suppress(ImportError, LedgerError, OSError):  # who needs it says what is wrong
        from acp_proxy.config import digest  # noqa: F401  to be there for `_note_settings`
        from acp_proxy.core.meter import readers

        readers.load()
        catalog.read()
        backend_at(config.ledger.url)
        if config.books.complete:
            from acp_proxy.importing import late, plans  # noqa: F401  the same
        if config.budgets:
            from acp_proxy.ledger.accounts import live_standings  # noqa: F401  as in a reader


def _note_settings(config: Config, ledger: BudgetLedger) -> None:
    """Store the digests of this machine's configuration files in the ledger; in the worker's thread."""
    from acp_proxy.config.digest import FORM, digest
    from acp_proxy.ledger.settings import LAYERS, Settings

    who = config.identity
    for layer in LAYERS:
        said = digest(config, layer)
        ledger.note_settings(
            Settings(who.organisation, socket.gethostname(), who.user, layer, said, FORM, time.time_ns())
        )


def _origin(config: Config, command: Sequence[str]) -> Origin:
    """The origin of rows, as far as known before the agent and the client have sent their names."""
    return Origin(
        organisation=config.identity.organisation,
        user=config.identity.user,
        team=config.identity.team,
        project=config.identity.project,
        host=socket.gethostname(),
        agent=Path(command[0]).name,
        agent_version=None,
        client=None,
    )


def _elapsed() -> int:
    """Nanoseconds since some moment, by a clock that cannot be set, and that goes on while the machine sleeps."""
    return time.clock_gettime_ns(_STEADY)
