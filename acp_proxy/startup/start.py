"""Starts the agent before anything heavy is imported: an agent's boot is what the user waits for, ours hides behind it.

Until the agent runs only `os`, `sys` and `_signal` are imported. Reads our own options by hand; never looks at what
comes after `--`.
"""

from __future__ import annotations

import os
import sys

from acp_proxy.system.errors import UsageError
from acp_proxy.system.spawn import NotStarted, become, hold_standard_descriptors, look_for_descriptors, spawn

TYPE_CHECKING = False  # `typing` is not imported yet
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from acp_proxy.config import Config
else:
    import _signal  # `signal` wraps it into enums, for 3 ms

USAGE = "usage: acp-proxy run [OPTIONS] -- AGENT [ARG...]"
COMMON = ("--config", "--ledger")  # also before the command's name
VALUED = (*COMMON, "--agent", "--user", "--team", "--project", "--budget", "--log", "--log-level")
FLAGS = ("--no-summary",)
HELP = ("-h", "--help")
CHECKED = ("config", "ledger", "budget", "log_level")  # any may be wrong, and then no agent is started
ONLY_LOOK = ("report", "budget", "session")  # commands in which msgspec meets neither a UUID nor a Decimal
WRITTEN = (0, 1, 3)  # exit statuses of commands whose answer stands on stdout, all of it
ADMIN_FILE = "/etc/acp-proxy/config.toml"


class HelpWanted(Exception):  # noqa: N818  it is no error
    """-h or --help stands among the options of `run`."""


def main(argv: Sequence[str]) -> int:
    """The exit status of `acp-proxy ARGV...`."""
    if argv[:1] == ["status"] and (told := _status(argv)) is not None:
        _leave(told)
    try:
        parsed = parse(argv)
    except UsageError as error:
        return _complain(str(error), 2)
    except HelpWanted:
        parsed = None
    if parsed is None:
        return _command(argv)
    return _leave(run(*parsed))


def parse(argv: Sequence[str]) -> tuple[dict[str, str], list[str]] | None:
    """The options of `run` by their names in the configuration, and the agent's command; None for other commands.

    Raises UsageError and HelpWanted.
    """
    options: dict[str, str] = {}
    at = _options(argv, 0, COMMON, (), options)
    word = argv[at] if at < len(argv) else None
    if word == "run":
        at += 1
    elif word is None or word.partition("=")[0] not in ("--", *VALUED, *FLAGS):
        return None
    at = _options(argv, at, VALUED, FLAGS, options)
    match argv[at : at + 1]:
        case ["--"] if any(argv[at + 1 : at + 2]):  # a word may be empty, as where a shell's variable is not set
            return options, list(argv[at + 1 :])
        case [] | ["--"]:
            raise UsageError(f"no agent given; {USAGE}")
        case [help_] if help_ in HELP:
            raise HelpWanted
        case [flag] if flag.partition("=")[0] in FLAGS:
            raise UsageError(f"{flag.partition('=')[0]} takes no value; {USAGE}")
        case [unknown] if unknown.startswith("-"):
            raise UsageError(_unknown(unknown.partition("=")[0]))
        case _:
            raise UsageError(f"the agent's command must follow --; {USAGE}")


def _options(
    argv: Sequence[str], at: int, valued: tuple[str, ...], flags: tuple[str, ...], options: dict[str, str]
) -> int:
    """Reads options into `options` from `at` on; returns where something else stands."""
    while at < len(argv):
        name, has_value, value = argv[at].partition("=")
        key = name[2:].replace("-", "_")
        if argv[at] in flags:
            options[key] = "true"
        elif name not in valued or name == "--":
            break
        elif has_value:
            options[key] = value
        else:
            at += 1
            if at == len(argv) or argv[at].partition("=")[0] in ("--", *HELP, *valued, *flags):
                raise UsageError(f"{name} needs a value; {USAGE}")
            options[key] = argv[at]
        at += 1
    return at


def _unknown(option: str) -> str:
    from difflib import get_close_matches  # only who mistypes waits for it

    close = get_close_matches(option, (*VALUED, *FLAGS), 1)
    return f"unknown option {option}; did you mean {close[0]}?" if close else f"unknown option {option}; {USAGE}"


def run(options: Mapping[str, str], agent: list[str]) -> int:
    """Starts and relays the agent; returns the exit status, which is the agent's."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # until the relay handles it: no traceback out of an import
    try:
        hold_standard_descriptors()
    except NotStarted as error:
        return _complain(str(error), error.status)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115  None where fd 2 came closed
    if agent[0].startswith("~/"):  # editors expand it in what they start, and that is us now
        agent = [os.path.expanduser(agent[0]), *agent[1:]]
    terminal = os.isatty(0) and os.isatty(1)
    configured = terminal or _may_be_wrong(options)
    try:
        if configured:
            config = _load(options)
        if terminal:
            _say("terminal: not relayed, not metered")
            become(agent)
        look_for_descriptors()
        started = spawn(agent)
    except UsageError as error:
        return _complain(str(error), 2)
    except NotStarted as error:
        return _complain(str(error), error.status)
    try:
        if not configured:
            config = _load(options)
        from acp_proxy.system.entry_points import any_entry_points

        if not any_entry_points(tuple(sys.path)):  # interceptors of other packages may use all of asyncio
            from acp_proxy.startup.relay_imports import import_for_relay

            import_for_relay()
        from acp_proxy.app import run_relay

        return run_relay(started, agent, config)
    except UsageError as error:
        wrong = _complain(str(error), 2)
    except NotStarted as error:
        wrong = _complain(str(error), error.status)
    os.kill(started.pid, _signal.SIGTERM)  # it runs, and will not be relayed
    return wrong


def _may_be_wrong(options: Mapping[str, str]) -> bool:
    """Whether there is any configuration that could be in error."""
    if any(key in CHECKED or not _is_plain(value) for key, value in options.items()):
        return True
    if any(name.startswith("ACP_PROXY_") for name in os.environ):
        return True
    if sys.platform == "darwin":
        directory = os.path.expanduser("~/Library/Application Support")
    else:
        directory = os.environ.get("XDG_CONFIG_HOME", "")
        if not directory.startswith("/"):
            directory = os.path.expanduser("~/.config")
    return any(os.access(file, os.F_OK) for file in (ADMIN_FILE, f"{directory}/acp-proxy/config.toml"))


def _is_plain(name: str) -> bool:
    """Whether nothing can be wrong with it: what is longer or stranger the configuration has to judge."""
    return name.strip() != "" and name.isascii() and name.isprintable() and len(name) < 100


def _load(options: Mapping[str, str]) -> Config:
    from acp_proxy.startup.lean_imports import import_leanly

    import_leanly()
    from acp_proxy.config import ConfigError, load

    try:
        return load(options, os.environ)
    except ConfigError as error:
        raise UsageError(str(error)) from error


def _status(argv: Sequence[str]) -> int | None:
    """The exit status of `status`; None where the parser of all commands is needed, for help or for what is wrong."""
    from acp_proxy.status.cache import kept, say

    if (answer := kept(argv, os.environ)) is not None:
        return _complain(wrong, 2) if (wrong := say(answer)) else 0
    options: dict[str, str] = {}
    try:
        if _options(argv, 1, (*COMMON, "--format"), ("--json",), options) < len(argv):
            return None
    except UsageError:
        return None
    if "json" in options:
        if "format" in options:
            return None
        del options["json"]
        options["format"] = "json"
    import gc

    gc.disable()  # for good: nothing here lives long enough to be looked through
    from acp_proxy.startup.lean_imports import import_leanly

    import_leanly(only_to_look=True)
    from acp_proxy.status.command import main as status

    wrong = status(argv, options, os.environ)
    return _complain(wrong, 2) if wrong else 0


def _command(argv: Sequence[str]) -> int:
    import gc

    gc.disable()  # what is imported stays: looking through it again and again takes 5 ms
    from acp_proxy.startup.lean_imports import import_argparse, import_leanly

    import_leanly(only_to_look=argv[0] in ONLY_LOOK if argv else False)
    import_argparse()
    from acp_proxy.cli import main as command

    gc.freeze()  # what answers make is looked through, and nothing that is here already
    gc.enable()
    status = command(list(argv))
    if status in WRITTEN and argv and argv[0] in ONLY_LOOK:
        _leave(status)
    if "threading" in sys.modules and sys.modules["threading"].active_count() > 1:
        # The answer is written. The interpreter would wait for who looks up a name: 28 s where no server answers.
        _leave(status)
    return status


def _leave(status: int) -> NoReturn:
    """Without taking the interpreter down, which would take 20 ms."""
    from contextlib import suppress

    if sys.stderr:
        with suppress(OSError):  # full or closed: the exit status is still the agent's
            sys.stderr.flush()
    os._exit(status)


def _say(text: str) -> None:
    """On one line: a newline behind an agent's name is shown, and nothing in one controls a terminal."""
    if sys.stderr:  # None where fd 2 came closed
        line = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
        sys.stderr.write(f"acp-proxy: {line}\n")
        sys.stderr.flush()


def _complain(text: str, status: int) -> int:
    _say(text)
    return status
