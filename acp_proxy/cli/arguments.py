"""Every command and option of the command line; `commands` does what they ask for.

`run` is only described here: `start.py` reads its options by hand, before anything else is imported.
"""

from __future__ import annotations

import argparse
from typing import Any, get_args

from acp_proxy import __version__
from acp_proxy.bills import BY as COMPARED
from acp_proxy.bills import PROVIDERS
from acp_proxy.cli.parser import Parser
from acp_proxy.completion import SHELLS
from acp_proxy.config.checks import WINDOWS
from acp_proxy.core.budget import Mode, OnExceed, Per
from acp_proxy.report import BY, FILTERS
from acp_proxy.setup import NAMES
from acp_proxy.status.overview import FIELDS
from acp_proxy.text.times import DAYS

_SAYS = "Relays the Agent Client Protocol, and meters what agents use."
_MORE = "`acp-proxy COMMAND --help` explains each command, `acp-proxy demo` shows them at work."
_MOST = 10**12  # tokens or lines: more is a typing mistake


def parser() -> argparse.ArgumentParser:
    """The result has `command`, and for commands with more of them `action`."""
    top = Parser("acp-proxy", description=_SAYS, epilog=_MORE)
    top.add_argument("-V", "--version", action="version", version=f"acp-proxy {__version__}")
    _add_common(top)
    commands = top.add_subparsers(metavar="COMMAND", title="commands", dest="command")
    for name, says, example, add_options in (
        ("run", "relay an agent and meter it", "run --budget 5 -- claude-agent-acp", _add_run),
        ("report", "what was spent", "report --by model --since 7d", _add_report),
        (
            "export",
            "spend in the columns of FinOps FOCUS, for chargeback",
            "export --focus --since 2026-10 --until 2026-11",
            _add_export,
        ),
        (
            "reconcile",
            "a provider's bill beside the ledger, and why they differ",
            "reconcile anthropic usage.json cost.json --by model",
            _add_reconcile,
        ),
        ("session", "one session: its turns, tokens, cost, and context as a plot", "session last", _add_session),
        (
            "status",
            "one line: today's spend, what is left of a budget, the last turn",
            "status --format '{today} {left}'",
            _add_status,
        ),
        ("budget", "budgets: what is left, and how to allow more for a while", "budget list", _add_budget),
        ("serve", "the ledger as a page for browsers, and metrics for Prometheus", "serve --port 8080", _add_serve),
        (
            "metrics",
            "the metrics for Prometheus, in a file for node_exporter or on stdout",
            "metrics --textfile /var/lib/node_exporter/acp-proxy.prom",
            _add_metrics,
        ),
        ("notify", "try the webhooks for notifications", "notify test", _add_notify),
        ("setup", "put the agents of an editor behind acp-proxy", "setup zed --dry-run", _add_setup),
        ("prices", "what models cost", "prices show claude-sonnet-5", _add_prices),
        (
            "ledger",
            "copy a ledger into another one",
            "ledger copy --to postgresql://db.example.com/acp_proxy",
            _add_ledger,
        ),
        (
            "import",
            "what agents wrote of their calls into files of their own, also from before acp-proxy",
            "import --dry-run",
            _add_import,
        ),
        ("config", "every value of the configuration, and where it comes from", "config --json", _add_config),
        ("doctor", "check configuration, ledger and catalog", "doctor --rebuild", _add_doctor),
        ("demo", "a session against a bundled agent, without network or key", "demo", _add_common),
        ("completion", "a script that lets a shell complete commands and options", "completion bash", _add_completion),
    ):
        add_options(_action(commands, name, says, example))
    return top


def _add_common(command: argparse.ArgumentParser) -> None:
    unset = argparse.SUPPRESS  # so that what stands before the command's name is kept
    command.add_argument("--config", metavar="FILE", default=unset, help="in place of the user's configuration file")
    command.add_argument(
        "--ledger", metavar="PATH", default=unset, help="the ledger: a file, or postgresql://HOST/DATABASE"
    )


def _add_run(command: argparse.ArgumentParser) -> None:
    command.usage = "acp-proxy [run [OPTIONS]] -- AGENT [ARG...]"
    command.description = (
        "Relay an agent and meter it. Everything after -- belongs to the agent; its exit status is the exit status."
    )
    _add_common(command)
    command.add_argument("--agent", metavar="NAME", help="a name to use instead of the one that the agent reports")
    command.add_argument("--user", metavar="NAME", help="who pays; by default the login name")
    command.add_argument("--team", metavar="NAME", help="by default none")
    command.add_argument("--project", metavar="NAME", help="by default the name of the git repository")
    command.add_argument("--budget", metavar="AMOUNT", help="US dollars that this run may spend, over all its sessions")
    command.add_argument("--no-summary", action="store_true", help="no summary on stderr at the end")
    command.add_argument("--log", metavar="FILE", help="log to a file instead of stderr")
    command.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning (default) or error")


def _add_report(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    command.add_argument("key", metavar="KEY", nargs="?", help=f"as --by; or {', '.join(DAYS)}")
    command.add_argument("--by", metavar="KEY", choices=BY, help=f"{', '.join(BY)} (default: day)")
    _add_interval(command)
    for name in FILTERS:
        part = "part of a session's title" if name == "title" else f"only this {name}"
        command.add_argument(f"--{name}", metavar="TEXT" if name == "title" else "NAME", type=_text, help=part)
    seen = "how much of what agents used went through acp-proxy, and how much around it, by what was imported"
    command.add_argument("--coverage", action="store_true", help=seen)
    most = "at most N lines: those that cost most, or the latest days, weeks or months"
    command.add_argument("--limit", metavar="N", type=_lines, help=most)
    command.add_argument("--plans", action="store_true", help="windows of plans and their history, in place of spend")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="exact figures, for programs")
    form.add_argument("--csv", action="store_true", help="the same for spreadsheets")


def _add_export(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    command.add_argument("--focus", action="store_true", required=True, help="in the columns of FinOps FOCUS 1.2")
    _add_interval(command)
    command.add_argument("--json", action="store_true", help="as JSON instead of CSV")


def _add_reconcile(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    command.add_argument("provider", metavar="PROVIDER", choices=PROVIDERS, help=f"one of {', '.join(PROVIDERS)}")
    files = "downloaded pages of the bill, in any order: JSON, or CSV"
    command.add_argument("files", metavar="FILE", nargs="+", type=_text, help=files)
    command.add_argument("--by", metavar="KEY", choices=COMPARED, default="day", help=f"{', '.join(COMPARED)}")
    people = "the ledger's USER of a user or key on the bill; may be repeated"
    command.add_argument("--map", metavar="ID=USER", action="append", type=_text, help=people)
    column = "of csv: which column has the day, model, user, key, input, prompt, cached_read, output, amount …"
    command.add_argument("--column", metavar="FIELD=NAME", action="append", type=_text, help=column)
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="exact figures, for programs")
    form.add_argument("--csv", action="store_true", help="the same for spreadsheets")


def _add_session(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    called = "its id, the first characters of its key in a report by session, a part of its title, or last"
    command.add_argument("session", metavar="ID", nargs="?", default="last", type=_text, help=f"{called} (default)")
    command.add_argument("--all", action="store_true", help="list every turn, not only the latest 40")
    _add_zone(command)
    command.add_argument("--json", action="store_true", help="exact figures, for programs")


def _add_status(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    form = command.add_mutually_exclusive_group()
    fields = f"with fields in braces: {', '.join(FIELDS)}; or json"
    form.add_argument("--format", metavar="TEXT", help=fields)
    form.add_argument("--json", action="store_true", help="exact figures, for programs")


def _add_budget(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    actions = command.add_subparsers(metavar="ACTION", title="actions", dest="action", required=True)
    listed = _action(actions, "list", "what is used, held and left of each budget; its reset", "budget list --json")
    admitted = "whether a prompt would be admitted now: status 0, or 3 when not"
    checked = _action(actions, "check", admitted, "budget check --model claude-opus-5-5")
    more = "budget grant daily --amount 5 --for 2h --reason release"
    granted = _action(actions, "grant", "allow more for a while", more)
    grants = _action(actions, "grants", "who granted what, and why", "budget grants --json")
    past = "which past turns the budgets of --config would have refused"
    simulated = _action(actions, "simulate", past, "budget simulate --config proposed.toml --since 30d")
    added = _action(actions, "add", "add a budget to the configuration", "budget add daily --amount 5 --window day")
    changed = _action(actions, "set", "change a budget of the configuration", "budget set daily --amount 8")
    removed = _action(actions, "remove", "remove a budget from the configuration", "budget remove daily")
    undone = _action(actions, "undo", "take back the last add, set or remove", "budget undo")
    for action in (listed, checked, granted, grants, simulated, added, changed, removed, undone):
        _add_common(action)
    for action in (added, changed):
        _add_budget_values(action)
    for action in (added, changed, removed):
        action.add_argument("name", metavar="NAME", type=_text, help="the name of the budget")
    for action in (added, changed, removed, undone):
        action.add_argument("--dry-run", action="store_true", help="show the change, and write nothing")
    for action in (listed, grants, simulated):
        action.add_argument("--json", action="store_true", help="exact figures, for programs")
    for name in ("agent", "model", "user", "team", "project"):
        default = "yours" if name in ("user", "team", "project") else "not known"
        says = f"the prompt's {name}; by default {default}"
        checked.add_argument(f"--{name}", metavar="NAME", type=_text, help=says)
    granted.add_argument("name", metavar="NAME", help="the name of the budget")
    granted.add_argument("--amount", metavar="N", required=True, help="in the budget's currency, or tokens or turns")
    granted.add_argument("--for", metavar="DURATION", required=True, dest="duration", help="how long: 90m, 2h, 7d")
    granted.add_argument("--reason", metavar="TEXT", required=True, help="why; it is kept")
    for name in get_args(Per):
        says = f"if the budget is per {name}: which one, by default yours; * for all"
        granted.add_argument(f"--for-{name}", metavar="NAME", type=_text, help=says)
    granted.add_argument("--layer", choices=("admin", "user"), help="which file's, if two budgets have this name")
    _add_since(simulated)


def _add_budget_values(action: argparse.ArgumentParser) -> None:
    """The keys of a `[[budget]]` that people type; all others are written into the file."""
    limit = action.add_mutually_exclusive_group()
    limit.add_argument("--amount", metavar="N", help="the limit as an amount of money")
    limit.add_argument("--tokens", metavar="N", type=_tokens, help="the limit in tokens")
    limit.add_argument("--turns", metavar="N", type=_tokens, help="the limit in turns")
    action.add_argument("--currency", metavar="CODE", type=_text, help="of the amount; by default USD")
    action.add_argument("--window", metavar="WINDOW", type=_text, help=f"{', '.join(WINDOWS)}, or a length such as 5h")
    action.add_argument("--per", metavar="KEY", choices=get_args(Per), help="one for each user, team, project or agent")
    scope = "only what matches: team=core, model=*opus*; may be repeated"
    action.add_argument("--scope", metavar="KEY=VALUE", action="append", type=_text, help=scope)
    action.add_argument("--timezone", metavar="ZONE", type=_text, help="of its days, weeks and months; by default UTC")
    action.add_argument("--mode", metavar="MODE", choices=get_args(Mode), help="shadow, warn or enforce (default)")
    ends = "what happens to a turn that goes beyond it"
    action.add_argument("--on-exceed", metavar="WHAT", choices=get_args(OnExceed), help=ends)


def _add_serve(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    command.add_argument("--host", metavar="ADDRESS", help="where to listen; by default 127.0.0.1")
    command.add_argument("--port", metavar="N", help="by default 9464; 0 picks a free one")
    command.add_argument(
        "--token-file", metavar="FILE", help="a file with the token that clients must send; needed except on loopback"
    )


def _add_metrics(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    into = "a file for node_exporter's textfile collector, written whole or not at all; by default stdout"
    command.add_argument("--textfile", metavar="PATH", help=into)


def _add_notify(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    actions = command.add_subparsers(metavar="ACTION", title="actions", dest="action", required=True)
    tested = _action(
        actions, "test", "send a sample through each channel: status 1 when one fails", "notify test leads"
    )
    _add_common(tested)
    tested.add_argument("name", metavar="NAME", nargs="?", help="only the channel of this name")


def _add_setup(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    command.add_argument("editor", metavar="EDITOR", choices=NAMES, nargs="?", help=", ".join(NAMES))
    command.add_argument(
        "--agent", metavar="NAME", help="only this one; added if it is not there: claude, codex, gemini …"
    )
    way = command.add_mutually_exclusive_group()
    way.add_argument("--list", action="store_true", help="the editors, their settings, and the agents in them")
    way.add_argument("--dry-run", action="store_true", help="show the change, and write nothing")
    way.add_argument("--undo", action="store_true", help="put the settings back as they were")


def _add_ledger(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    actions = command.add_subparsers(metavar="ACTION", title="actions", dest="action", required=True)
    into = "copy all rows and grants into another ledger, which keeps what it has"
    copied = _action(actions, "copy", into, "ledger copy --to postgresql://db.example.com/acp_proxy")
    _add_common(copied)
    for option, dest in (("--from", "source"), ("--to", "target")):
        copied.add_argument(
            option, metavar="PATH", dest=dest, help=f"the {dest}, as --ledger; by default the configured"
        )


def _add_import(command: argparse.ArgumentParser) -> None:
    from acp_proxy.importing.agents import AGENTS

    _add_common(command)
    command.add_argument("agents", metavar="AGENT", nargs="*", help=f"all by default: {', '.join(AGENTS)}")
    command.add_argument("--since", metavar="TIME", help="only calls from then on, as for report")
    command.add_argument("--dry-run", action="store_true", help="show what would be imported, and write nothing")
    command.add_argument("--json", action="store_true", help="for programs")


def _add_config(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    command.add_argument("--json", action="store_true", help="for programs")


def _add_doctor(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    again = "recompute all totals of the ledger from its rows; writers wait meanwhile"
    command.add_argument("--rebuild", action="store_true", help=again)


def _add_prices(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    actions = command.add_subparsers(metavar="ACTION", title="actions", dest="action", required=True)
    listed = _action(actions, "list", "every model of the catalog", "prices list opus")
    listed.add_argument("search", metavar="TEXT", nargs="?", default="", help="only names that contain it")
    shown = _action(actions, "show", "what a model id resolves to, and its prices", "prices show claude-sonnet-5")
    priced = _action(actions, "cost", "what tokens cost", "prices cost claude-sonnet-5 --input 1200 --output 800")
    for action in (shown, priced):
        action.add_argument("model", metavar="MODEL", type=_model, help="as an agent reports it")
    for name, says in (
        ("input", "input tokens, except those read from or written to a cache"),
        ("output", "output tokens, except thinking"),
        ("thought", "tokens of thinking"),
        ("cached-read", "input tokens read from a cache"),
        ("cached-write", "input tokens written to a cache; [pricing] cache_write says for how long"),
        ("cached-write-1h", "input tokens written to a cache for an hour"),
    ):
        priced.add_argument(f"--{name}", metavar="N", type=_tokens, default=0, help=says)
    used = "the largest request's context in tokens; without it all tokens are one request"
    priced.add_argument("--context-used", metavar="N", type=_tokens, help=used)
    for action in (listed, shown, priced):
        _add_common(action)
        action.add_argument("--at", metavar="TIME", help="prices of that time, by default now: 2026-11-01, 7d …")
        action.add_argument("--json", action="store_true", help="exact figures, for programs")


def _add_completion(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    command.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def _add_interval(command: argparse.ArgumentParser) -> None:
    _add_since(command)
    command.add_argument("--until", metavar="TIME", help="before then, in the same forms; by default all")
    _add_zone(command)


def _add_since(command: argparse.ArgumentParser) -> None:
    dates = "2026-11-01, 2026-11, 2026-W47, today, yesterday, week, month, an RFC 3339 time"
    forms = f"from then on, by default all: {dates}, or 7d before now (also m, h, w)"
    command.add_argument("--since", metavar="TIME", help=forms)


def _add_zone(command: argparse.ArgumentParser) -> None:
    command.add_argument("--tz", metavar="ZONE", help="a time zone such as Europe/Berlin; by default the local one")


def _action(actions: argparse._SubParsersAction[Any], name: str, says: str, example: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = actions.add_parser(
        name, help=says, description=f"{says[:1].upper()}{says[1:]}.", epilog=f"Example: acp-proxy {example}"
    )
    return made


def _model(given: str) -> str:
    if not given.strip():
        raise argparse.ArgumentTypeError("expected a model's name")
    return _text(given)


def _text(given: str) -> str:
    """Text that JSON and a ledger can store: a command line may hold other bytes."""
    try:
        given.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("expected text in UTF-8") from None
    return given


def _tokens(text: str) -> int:
    return _number(text, "tokens")


def _lines(text: str) -> int:
    if not (number := _number(text, "lines, at least 1")):
        raise argparse.ArgumentTypeError(f"expected a number of lines, at least 1, not {text!r}")
    return number


def _number(text: str, of: str) -> int:
    """From 0 on. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number of {of}, not {text!r}")
    if len(text.lstrip("0")) > len(str(_MOST)) or int(text) > _MOST:
        raise argparse.ArgumentTypeError(f"expected a number of {of.partition(',')[0]} up to {_MOST:,}, not {text!r}")
    return int(text)
