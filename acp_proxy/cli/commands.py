"""The commands: each calls what does the work, and writes its answer."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from acp_proxy.cli import options
from acp_proxy.config import load, load_to_answer
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import LedgerReader, Query, open_ledger, open_reader
from acp_proxy.report import FILTERS, Report, formats, query, report, tables
from acp_proxy.system.errors import UsageError
from acp_proxy.text.figures import aligned, clean, counted
from acp_proxy.text.times import Zone


def _nothing(arguments: argparse.Namespace) -> int:
    from acp_proxy.cli import overview

    if overview.is_asked_by_a_program():
        raise UsageError("no command given; in an editor's settings: acp-proxy run -- AGENT; see acp-proxy --help")
    config, zone = options.config(arguments), options.zone(None)
    sys.stdout.write(overview.overview(config, zone, time.time_ns()))
    return 0


def _run(_: argparse.Namespace) -> int:
    raise UsageError("no agent given; usage: acp-proxy run [OPTIONS] -- AGENT [ARG...]")


def _report(arguments: argparse.Namespace) -> int:
    if arguments.plans:
        from acp_proxy.cli import plans

        sys.stdout.writelines(plans.answer(arguments))
        return 0
    zone = options.zone(arguments.tz)
    now = time.time_ns()
    filters = [(name, value) for name in FILTERS if (value := getattr(arguments, name)) is not None]
    config = options.config(arguments)
    ours = config.identity.organisation
    by = options.report_key(arguments)
    wanted = query(*options.interval(arguments, zone, now), [("organisation", ours), *filters])
    ledger = open_reader(config.ledger.url, tell=options.tell(arguments))
    if arguments.coverage:
        by = "agent" if arguments.by is None and arguments.key is None else by
        sys.stdout.write(_coverage(ledger, by, wanted, zone, arguments))
        return 0
    try:
        found = report(ledger, by, wanted, zone, arguments.limit)
        if not (found.lines or arguments.json or arguments.csv):
            from acp_proxy.report.nothing import nothing

            is_timed = (wanted.since, wanted.until) != (None, None)
            sys.stdout.write(nothing(ledger, ours, filters, zone if is_timed else None))
            return 0
    finally:
        ledger.close()
    sys.stdout.writelines(_rendered(found, arguments))
    return 0


def _coverage(ledger: LedgerReader, by: str, wanted: Query, zone: Zone, arguments: argparse.Namespace) -> str:
    from acp_proxy.report import coverage

    if by not in coverage.BY or arguments.csv or arguments.limit is not None:
        raise UsageError(f"report --coverage: expected by {', '.join(coverage.BY)}, and neither --csv nor --limit")

    with closing(ledger):
        found = coverage.coverage(ledger, by, wanted, zone)
    return coverage.as_json(found, by, wanted, zone) if arguments.json else coverage.plain(found, by)


def _rendered(found: Report, arguments: argparse.Namespace) -> Iterable[str]:
    if arguments.json:
        return formats.as_json(found)
    if arguments.csv:
        from acp_proxy.report import spreadsheet

        return spreadsheet.as_csv(found)
    if width := options.width():
        return tables.coloured(found, width, os.environ)
    return tables.plain(found)


def _budget(arguments: argparse.Namespace) -> int:
    from acp_proxy.budget import command
    from acp_proxy.budget.current_user import here

    if arguments.action in ("add", "set", "remove", "undo"):
        sys.stdout.write(_budget_edited(arguments))
        return 0
    now, zone, tell = time.time_ns(), options.zone(None), options.tell(arguments)
    place = command.Place(now, zone, here(), os.environ, options.width(), tell)
    if arguments.action == "simulate":
        arguments.since = options.instant(arguments, "since", place.zone, place.now)
        config = command.proposed(options.common(arguments), os.environ)
    else:
        config = options.config(arguments)
    status, answer = command.main(arguments, config, place)
    sys.stdout.write(answer)
    return status


def _budget_edited(arguments: argparse.Namespace) -> str:
    from acp_proxy.budget import editing
    from acp_proxy.config.files import expanded, user_file
    from acp_proxy.system.directories import state_directory

    common = options.common(arguments)
    path = expanded(common["config"], os.environ) if "config" in common else user_file(os.environ)
    admins = [budget.name for budget in load({}, os.environ).budgets if budget.layer == "admin"]
    given = vars(arguments)
    asked = editing.Asked(arguments.action, given.get("name"), options.budget_values(arguments), arguments.dry_run)
    colours = options.width() is not None and not os.environ.get("NO_COLOR")
    return editing.edit(asked, path, state_directory(os.environ), admins, colours=colours)


def _import(arguments: argparse.Namespace) -> int:
    from acp_proxy.importing import command, formats
    from acp_proxy.importing.agents import AGENTS
    from acp_proxy.importing.progress import bar

    for name in arguments.agents:
        if name not in AGENTS:
            raise UsageError(f"import: expected one of {', '.join(AGENTS)}, not {name!r}")
    now, config = time.time_ns(), options.config(arguments)
    since = options.instant(arguments, "since", options.zone(None), now)
    asked = command.Asked(tuple(arguments.agents), since, arguments.dry_run)
    with bar(sys.stderr) as progress:
        found = command.main(asked, config, os.environ, now, progress)
    answer = formats.as_json if arguments.json else formats.plain
    sys.stdout.write(answer(found, dry_run=arguments.dry_run))
    return 0


def _config(arguments: argparse.Namespace) -> int:
    from acp_proxy.config import origins

    found = list(origins.values(options.common(arguments), os.environ))
    if arguments.json:
        sys.stdout.write(
            formats.as_json_text([{"key": each.key, "value": each.value, "source": each.source} for each in found])
        )
        return 0
    rows = [(clean(each.key), clean(origins.as_text(each.value)), clean(each.source)) for each in found]
    sys.stdout.write(aligned([("key", "value", "from"), *rows], [False] * 3))
    return 0


def _session(arguments: argparse.Namespace) -> int:
    from acp_proxy.report import session, session_formats

    config, zone, now = options.config(arguments), options.zone(arguments.tz), time.time_ns()
    mine = (("organisation", config.identity.organisation), ("user", config.identity.user))
    ledger = open_reader(config.ledger.url, tell=options.tell(arguments))
    try:
        if arguments.json:
            info = session.session_called(ledger, arguments.session, mine, now)
            line, rows = session.session_line(ledger, info), session.session_rows(ledger, info)
            sys.stdout.writelines(session_formats.as_json(line, rows))
            return 0
        most = None if arguments.all else session_formats.MOST_TURNS
        found = session.session_report(ledger, arguments.session, mine, zone, now, most)
        if width := options.width():
            sys.stdout.writelines(session_formats.coloured(found, width, os.environ, every=arguments.all))
        else:
            sys.stdout.writelines(session_formats.plain(found, every=arguments.all))
    except session.NoSuchSession as error:
        raise UsageError(str(error)) from error
    finally:
        ledger.close()
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from acp_proxy import focus
    from acp_proxy.config.applied import catalog_of

    config, zone, now = options.config(arguments), options.zone(arguments.tz), time.time_ns()
    wanted = Query(*options.interval(arguments, zone, now))
    ledger = open_reader(config.ledger.url, tell=options.tell(arguments))
    try:
        found = focus.rows(ledger, wanted, config.identity.organisation, zone, catalog_of(config).lab)
        sys.stdout.writelines(focus.as_json(found) if arguments.json else focus.as_csv(found))
    finally:
        ledger.close()
    return 0


def _reconcile(arguments: argparse.Namespace) -> int:
    from acp_proxy.config.applied import catalog_of
    from acp_proxy.reconcile import command, reconcile
    from acp_proxy.reconcile import formats as rendered

    config, bill = options.config(arguments), command.bill_of(arguments)
    people = command.pairs(arguments.map, "--map", "ID=USER, such as apikey_01Rj=alice")
    ledger = open_reader(config.ledger.url, tell=options.tell(arguments))
    try:
        ours = config.identity.organisation
        found = reconcile(bill, ledger, catalog_of(config), ours, arguments.by, people)
    finally:
        ledger.close()
    if arguments.json:
        sys.stdout.write(rendered.as_json(found))
    elif arguments.csv:
        sys.stdout.writelines(rendered.as_csv(found))
    else:
        sys.stdout.write(rendered.as_text(found, options.width(), os.environ))
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from acp_proxy.status import command

    form = {} if arguments.format is None else {"format": arguments.format}
    if arguments.json:
        form = {"format": "json"}
    if wrong := command.main(arguments.asked, {**options.common(arguments), **form}, os.environ):
        raise UsageError(wrong)
    return 0


def _serve(arguments: argparse.Namespace) -> int:
    with _installed("serve"):
        from acp_proxy.serve import command
    given = vars(arguments)
    chosen = {name: given[name] for name in ("host", "port", "token_file") if given[name] is not None}
    return command.main(load_to_answer({**options.common(arguments), **chosen}, os.environ), os.environ, sys.stderr)


@contextmanager
def _installed(command: str) -> Iterator[None]:
    """Around the import of a command that needs packages of its own. Raises UsageError where they are missing."""
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{command}: not installed, run pip install '.[serve]' in a clone of acp-proxy") from error


def _metrics(arguments: argparse.Namespace) -> int:
    with _installed("metrics"):
        from acp_proxy.metrics import command
    config, tell = options.config(arguments), options.tell(arguments)
    if arguments.textfile is None:
        sys.stdout.buffer.write(command.scraped(config, tell))
    else:
        command.into_file(Path(arguments.textfile), config, tell)
    return 0


def _notify(arguments: argparse.Namespace) -> int:
    with _installed("notify"):
        from acp_proxy.notify import command
    status, answer = command.test(options.config(arguments), arguments.name, time.time_ns())
    sys.stdout.write(answer)
    return status


def _setup(arguments: argparse.Namespace) -> int:
    from acp_proxy.setup import NAMES, command, showing
    from acp_proxy.setup.changes import SetupError

    colours = options.width() is not None and not os.environ.get("NO_COLOR")
    if arguments.list:
        sys.stdout.write(showing.found(os.environ))
        return 0
    if arguments.editor is None:
        raise UsageError(f"setup: expected an editor, one of {', '.join(NAMES)}, or --list")
    asked = command.Asked(arguments.editor, arguments.agent, arguments.dry_run, arguments.undo)
    try:
        sys.stdout.write(command.main(asked, os.environ, colours=colours))
    except SetupError as error:
        raise UsageError(str(error)) from error
    return 0


def _prices(arguments: argparse.Namespace) -> int:
    from acp_proxy import prices
    from acp_proxy.config.applied import catalog_of

    config = options.config(arguments)
    catalog = catalog_of(config)
    now = time.time_ns()
    asked_for = options.instant(arguments, "at", options.zone(None), now)
    at = now if asked_for is None else asked_for
    match arguments:
        case argparse.Namespace(action="list", search=search, json=as_json):
            text = prices.list_prices(catalog, at, search, as_json=as_json, width=options.width(), environ=os.environ)
        case argparse.Namespace(action="show", model=model, json=as_json):
            text = prices.show(catalog, model, at, as_json=as_json)
        case argparse.Namespace(model=model, context_used=context, json=as_json) as given:
            usage = Usage(given.input, given.cached_read, given.cached_write, given.output, given.thought)
            tokens = prices.Tokens(usage, given.cached_write_1h)
            text = prices.cost(catalog, model, tokens, at, context, as_json=as_json)
    sys.stdout.write(text)
    # JSON says in itself what is not known; who reads a line of text should not take it for a price.
    found = arguments.json or arguments.action == "list" or catalog.find(arguments.model)
    return 0 if found else 1


def _ledger(arguments: argparse.Namespace) -> int:
    from acp_proxy.config.applied import keeps_titles
    from acp_proxy.ledger.writing.copying import copy

    config = options.config(arguments)
    source, target = (options.ledger_url(arguments, name) or config.ledger.url for name in ("source", "target"))
    with closing(open_ledger(source, must_exist=True)) as old, closing(open_ledger(target)) as new:
        copied = copy(old, new, titles=keeps_titles(config, target))
        by_organisation = old.summed(Query(), ("organisation",))
    grants = f" and {counted(copied.grants, 'grant')}" if copied.grants else ""
    part = f"{copied.rows:,} of " if copied.rows < copied.read else ""
    rows = f"{part}{counted(copied.read, 'row')}"
    sys.stdout.write(f"Copied {rows}{grants} to {new.url}, which keeps what it had.\n")
    ours = config.identity.organisation
    for sums in by_organisation:
        if (theirs := str(sums.key[0])) != ours:
            rows, hidden = counted(sums.rows, "row"), f'reports and budgets of "{clean(ours)}" do not count them'
            sys.stdout.write(f'{rows} of organisation "{clean(theirs)}": {hidden}.\n')
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from acp_proxy import doctor

    return doctor.main(options.common(arguments), os.environ, sys.stdout, rebuild=arguments.rebuild)


def _demo(_: argparse.Namespace) -> int:
    from acp_proxy import demo

    return demo.main()


def _completion(arguments: argparse.Namespace) -> int:
    from acp_proxy.completion import script_of

    sys.stdout.write(script_of(arguments.shell))
    return 0


COMMANDS: Mapping[str | None, Callable[[argparse.Namespace], int]] = {
    None: _nothing,
    "run": _run,
    "report": _report,
    "export": _export,
    "reconcile": _reconcile,
    "session": _session,
    "status": _status,
    "budget": _budget,
    "serve": _serve,
    "metrics": _metrics,
    "notify": _notify,
    "setup": _setup,
    "prices": _prices,
    "ledger": _ledger,
    "import": _import,
    "config": _config,
    "doctor": _doctor,
    "demo": _demo,
    "completion": _completion,
}
