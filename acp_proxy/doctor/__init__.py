"""`acp-proxy doctor`: checks configuration, ledger, agents, budgets, machines, interceptors and so on, one line each.

Repairs nothing except, on request, running totals. Opens the ledger as a proxy does: creates a missing one, and takes
over the journals of dead proxies. A ledger that `--ledger` names is not created, because the name may be mistyped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import Literal, TextIO

from msgspec import Struct

from acp_proxy.budget import on_plans
from acp_proxy.catalog import Catalog
from acp_proxy.config import ADMIN_FILE, Config, ConfigError, load
from acp_proxy.config.applied import profiles_of
from acp_proxy.config.schema import quoted
from acp_proxy.core.agents.lookup import how_it_counts, profile_of
from acp_proxy.core.entry import Entry
from acp_proxy.core.windows import DAY, SECOND
from acp_proxy.doctor.bills import bill_troubles
from acp_proxy.doctor.budgets import budget_troubles, in_words, plan_troubles
from acp_proxy.doctor.channels import channel_troubles
from acp_proxy.doctor.clocks import clock_trouble
from acp_proxy.doctor.doubled import turns_booked_twice
from acp_proxy.doctor.interceptors import interceptor_troubles
from acp_proxy.doctor.machines import machines_that_differ
from acp_proxy.doctor.servers import server_findings
from acp_proxy.doctor.telemetry import exporter_troubles, telemetry_troubles
from acp_proxy.ledger import LedgerError, LedgerReader, NoLedgerError, Query, open_ledger, open_reader
from acp_proxy.ledger.budgets import BudgetLedger, BudgetReader
from acp_proxy.ledger.journal.recovery import journals_found
from acp_proxy.ledger.places import foreign_file_system, is_shared, journal_directories, sqlite_path
from acp_proxy.text.figures import clean, counted

_OLD = 120  # days; prices of models change a few times a year
_UNKNOWN = "unknown agent"  # so begins what a row says whose agent was not in the table


class Finding(Struct, frozen=True):
    """One line of the answer."""

    verdict: Literal["ok", "warn", "FAIL"]
    text: str


def main(
    options: Mapping[str, str],
    environ: Mapping[str, str],
    out: TextIO,
    *,
    admin_file: Path = ADMIN_FILE,
    rebuild: bool = False,
    clock: Callable[[], int] = time.time_ns,
) -> int:
    """Writes the findings as they come. The exit status is 1 when one is a failure.

    `clock` is Unix time in nanoseconds. With `rebuild` all that is added up in the ledger is made anew from its rows
    first.
    """
    failed = False
    for finding in findings(options, environ, clock(), admin_file, rebuild=rebuild):
        out.write(f"{finding.verdict:<5}{clean(finding.text)}\n")
        out.flush()
        failed |= finding.verdict == "FAIL"
    return int(failed)


def findings(
    options: Mapping[str, str], environ: Mapping[str, str], now: int, admin_file: Path, *, rebuild: bool = False
) -> Iterator[Finding]:
    """One after the other, as each is found. `now` is Unix ns; a configuration that cannot be read is a finding."""
    try:
        config = load(options, environ, admin_file=admin_file)
    except ConfigError as error:
        yield Finding("FAIL", f"config: {error}")  # and which ledger is meant is not known
    else:
        yield from _config(config)
        yield from _ledger(config, environ, now, rebuild, typed="ledger" in options)
        yield from _telemetry(config, environ)
    yield from _interceptors()
    yield _catalog(Catalog(), now)


def _config(config: Config) -> Iterator[Finding]:
    files = ", ".join(map(str, config.files))
    yield Finding("ok", f"config: {files or 'no file, all defaults'}")
    for key in config.overruled:
        yield Finding("warn", f"config: {key} is set, but the administrator's file decides it")


def _ledger(config: Config, environ: Mapping[str, str], now: int, rebuild: bool, *, typed: bool) -> Iterator[Finding]:
    trouble: list[Finding] = []
    directories = journal_directories(environ)

    def warn(event: str, **fields: object) -> None:
        details = ", ".join(f"{name} {value}" for name, value in fields.items())
        trouble.append(Finding("warn", f"{event.replace('.', ': ')}: {details}"))

    try:
        with closing(open_ledger(config.ledger.url, warn=warn, journals=directories, must_exist=typed)) as ledger:
            yield Finding("ok", f"ledger: {ledger.check()}")
            if rebuild:
                yield _rebuilt(ledger)
            yield from trouble
            yield from _clock(ledger)
            yield from _servers(config, ledger, now)
            yield from _moved_aside(config.ledger.url)
            yield from _journals(directories)
            yield from _agents(ledger, config)
            yield from _doubled(config, ledger, now)
            yield from _budgets(config, ledger)
            yield from _channels(config, ledger, now)
            yield from _exporters(config, ledger, now)
            yield from _bills(config, ledger, environ, now)
            yield from _machines(config, ledger, now)
    except NoLedgerError as error:
        yield Finding("FAIL" if rebuild else "warn", f"ledger: {error}")
        yield from _journals(directories)
        with closing(open_reader(config.ledger.url, journals=directories)) as empty:
            yield from _budgets(config, empty)
    except LedgerError as error:
        yield Finding("FAIL", f"ledger: {error}")
        yield from trouble


def _rebuilt(ledger: BudgetLedger) -> Finding:
    were = "they were right" if ledger.rebuild() else "they were not right"
    rows = counted(sum(sums.rows for sums in ledger.summed(Query(), ())), "row")
    return Finding("ok", f"totals: recomputed from {rows}; {were}")


def _clock(ledger: BudgetLedger) -> Iterator[Finding]:
    if trouble := clock_trouble(ledger):
        yield Finding("warn", f"clock: {trouble}")


def _servers(config: Config, ledger: BudgetLedger, now: int) -> Iterator[Finding]:
    for text, is_trouble in server_findings(ledger, config.identity.organisation, now):
        yield Finding("warn" if is_trouble else "ok", text)


def _moved_aside(url: str) -> Iterator[Finding]:
    """Damaged ledgers that were set aside. The process that found one warned once, and may have been a status bar."""
    if is_shared(url):
        return
    path = sqlite_path(url)
    for file in sorted(path.parent.glob(f"{escape(path.name)}.corrupt-*Z")):
        saved = "`sqlite3 FILE .recover` may save them; remove the file when you no longer need it"
        yield Finding("warn", f"ledger: {file} was damaged, and its rows are in no report: {saved}")


def _journals(directories: Sequence[Path]) -> Iterator[Finding]:
    """Runs after the ledger was opened: a dead proxy's journal that still exists could not be taken over."""
    found = journals_found(directories)
    alive = sum(journal.alive for journal in found)
    usable = next((directory for directory in directories if _usable(directory)), None)
    if usable:
        yield Finding("ok", f"journal: {usable}, {alive} in use")
    else:
        where = ", ".join(map(str, directories))
        yield Finding("warn", f"journal: no local, writable directory ({where}): a killed proxy may lose rows")
    for journal in found:
        contents = journal.contents
        if contents and (rows := len(contents.rows) + len(contents.open)):
            owed = f"{counted(rows, 'row')} for {contents.ledger}"
            yield Finding(
                "warn", f"journal: {journal.path} has {owed}: `acp-proxy doctor --ledger URL` takes them over"
            )
        elif not journal.alive and not contents:
            yield Finding("warn", f"journal: {journal.path} cannot be read by this version")


def _usable(directory: Path) -> bool:
    """Whether a journal can be made there, or the directory for it."""
    try:
        existing = next(path for path in (directory, *directory.parents) if _is_there(path))
        is_far = foreign_file_system(directory.resolve())
        return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK) and not is_far
    except OSError:  # one of those above it may not be entered
        return False


def _is_there(path: Path) -> bool:
    """Raises OSError where that cannot be told; from Python 3.14 on `exists` does not."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _agents(ledger: BudgetLedger, config: Config) -> Iterator[Finding]:
    """How each agent that the ledger knows is counted."""
    overrides = profiles_of(config)
    for name, version, ended_at in sorted(ledger.recent.agents(), key=lambda seen: (seen[0], str(seen[1]))):
        profile = profile_of(name, version, overrides)
        called = f"agent: {name} {version or '(no version)'}"
        if profile.known:
            yield Finding("ok", f"{called}: {how_it_counts(profile)}")
            continue
        latest = _latest(ledger, name, version, ended_at)
        if latest is not None and latest.usage_source == "agent" and not latest.detail.startswith(_UNKNOWN):
            yield Finding("ok", f"{called}: not in the table by its name, but recognized by other fields")
        else:
            reason = f" ({latest.detail})" if latest is not None and latest.detail else ""
            yield Finding("warn", f"{called}: {how_it_counts(profile)}{reason}; [agents.{quoted(name)}] overrides this")


def _doubled(config: Config, ledger: LedgerReader, now: int) -> Iterator[Finding]:
    if twice := turns_booked_twice(config, ledger, now):
        text = f"chain: {counted(twice, 'turn')} of the last day booked twice"
        yield Finding("warn", f"{text}: two acp-proxies in one chain; remove one")


def _budgets(config: Config, ledger: BudgetReader) -> Iterator[Finding]:
    for budget, troubles in budget_troubles(config, ledger):
        text = f'budget: "{budget.name}" ({budget.layer}): {in_words(budget)}'
        yield Finding("warn" if troubles else "ok", "; ".join((text, *troubles)))
    for of_plan, trouble in plan_troubles(config, ledger):
        text = f'budget: "{of_plan.name}" ({of_plan.layer}): {on_plans.in_words(of_plan)}'
        yield Finding("warn" if trouble else "ok", f"{text}{trouble and f'; {trouble}'}")


def _channels(config: Config, ledger: BudgetLedger, now: int) -> Iterator[Finding]:
    for text, troubles in channel_troubles(config, ledger, now):
        yield Finding("warn" if troubles else "ok", "; ".join((text, *troubles)))


def _exporters(config: Config, ledger: BudgetLedger, now: int) -> Iterator[Finding]:
    for text, trouble in exporter_troubles(config, ledger, now):
        yield Finding("warn" if trouble else "ok", f"{text}{trouble and f'; {trouble}'}")


def _bills(config: Config, ledger: BudgetLedger, environ: Mapping[str, str], now: int) -> Iterator[Finding]:
    for text, trouble in bill_troubles(config, ledger, environ, now):
        yield Finding("warn" if trouble else "ok", f"{text}{trouble and f'; {trouble}'}")


def _telemetry(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    for text, trouble in telemetry_troubles(config, environ):
        yield Finding("warn" if trouble else "ok", f"{text}{trouble and f'; {trouble}'}")


def _interceptors() -> Iterator[Finding]:
    for text, trouble in interceptor_troubles():
        yield Finding("FAIL" if trouble else "ok", f"interceptor: {text}{trouble and f'; {trouble}'}")


def _machines(config: Config, ledger: BudgetLedger, now: int) -> Iterator[Finding]:
    """Each proxy uses the configuration files of its own machine."""
    count, differ = machines_that_differ(config, ledger, now)
    for text in differ:
        yield Finding("warn", f"machine: {text}")
    if count > len(differ):
        same = counted(count - len(differ), "other machine")
        yield Finding("ok", f"machine: the administrator's file has the same meaning on {same}")


def _latest(ledger: LedgerReader, name: str, version: str | None, ended_at: int) -> Entry | None:
    """The agent's last row of which it told the tokens, else the last that says why it was counted as it was."""
    told = explained = None
    for row in ledger.rows(Query(since=ended_at - DAY, where=(("agent", name), ("agent_version", version)))):
        told = row.entry if row.entry.usage_source == "agent" and row.entry.usage.total else told
        explained = row.entry if row.entry.detail else explained
    return told or explained


def _catalog(catalog: Catalog, now: int) -> Finding:
    count = sum(1 for _ in catalog.rows)
    text = f"catalog: prices of {count} models as of {catalog.date}"
    today = datetime.fromtimestamp(now // SECOND, UTC).date()
    if (today - catalog.date).days > _OLD:
        return Finding("warn", f"{text}: a newer acp-proxy has newer ones")
    return Finding("ok", text)
