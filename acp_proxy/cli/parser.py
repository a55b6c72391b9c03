"""A parser that says in one line what is wrong with a command line, and what was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from acp_proxy.system.errors import UsageError


class _Formatter(argparse.HelpFormatter):
    """Asks how wide the terminal is when there is help to show, and not with each option that is added."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)

    def format_help(self) -> str:
        asked = argparse.HelpFormatter(self._prog)
        self._width, self._max_help_position = asked._width, asked._max_help_position
        return super().format_help()


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations: an option added later must not change a script."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, allow_abbrev=False, formatter_class=_Formatter, **options)
        self.describe: Callable[[Parser], None] | None = None  # adds the options, once something is parsed
        self._asked: Sequence[str] = ()  # the words that are being parsed

    def described(self) -> Parser:
        """With all of its options."""
        describe, self.describe = self.describe, None
        if describe is not None:
            describe(self)
        return self

    def add_subparsers(self, **options: Any) -> Any:
        """What stands before the name of a command or action, unless it is a value, needs no formatter."""
        if not self._get_positional_actions():
            options.setdefault("prog", self.prog)
        return super().add_subparsers(**options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self._in_our_words(message)}; see {self.prog} --help")

    def _in_our_words(self, message: str) -> str:
        """Rewords messages of argparse such as `argument --since: expected one argument`."""
        missing = message.partition("arguments are required: ")[2]
        if missing == "ACTION":
            actions = next(each.choices or () for each in self._actions if each.metavar == "ACTION")
            return f"{self._called()}: expected {_listed(list(actions), 'or')}"
        if missing:
            return (
                f"{self._called()}: expected {_listed([self._usage_of(name) for name in missing.split(', ')], 'and')}"
            )
        of, _, why = message.removeprefix("argument ").partition(": ")
        option = of.rpartition("/")[2]
        if why == "expected one argument":
            return f"{option} needs a value: {self._usage_of(option).rpartition(' ')[2]}"
        if why.startswith("ignored explicit argument"):
            return f"{option} takes no value"
        if other := why.partition("not allowed with argument ")[2]:
            return f"expected {other} or {option}, not both"
        return f"{option}: {why}" if why else message

    def _called(self) -> str:
        return self.prog.partition(" ")[2]

    def _usage_of(self, name: str) -> str:
        """`--since TIME` of `--since`."""
        metavar = self._option_string_actions[name].metavar if name in self._option_string_actions else None
        return f"{name} {metavar}" if metavar else name

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Whatever is left over is complained of here, where the command is known that does not have it."""
        self.described()
        self._asked = args or ()
        found, unknown = super().parse_known_args(args, namespace)
        if not unknown:
            return found, unknown
        if unknown[0] == "--":
            raise UsageError("--: expected no more words; only the agent's command of `run` follows --")
        if not unknown[0].startswith("-"):
            self.error(f"one word too many: {unknown[0]!r}")
        raise self._unknown_option(unknown[0])

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and arg_strings == ["--"]:  # `--user=--`; Python 3.11 takes it for the end of options
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = list(action.choices)
        if isinstance(action, argparse._SubParsersAction):
            word = str(action.metavar).lower()
            for before in self._asked[: self._asked.index(value)]:  # of which it may be what was meant as the value
                if before.startswith("-") and before.partition("=")[0] not in self._option_string_actions:
                    raise self._unknown_option(before)
            meant = self._meant(value, [*choices, *self._option_string_actions])
            if word == "command" and "did you mean" not in meant and _is_agent(value):
                meant = f"; to relay an agent: acp-proxy run -- {' '.join(self._asked[self._asked.index(value) :])}"
            raise UsageError(f"unknown {word} {value}{meant}")
        if action.dest == "editor":
            from acp_proxy.setup.others import fitting

            raise UsageError(fitting(value))
        name = action.option_strings[0] if action.option_strings else self.prog.split()[-1]
        raise UsageError(f"{name}: expected {_listed(choices, 'or')}, not {value!r}")

    def _unknown_option(self, option: str) -> UsageError:
        name = option.partition("=")[0]
        return UsageError(f"unknown option {name}{self._meant(name, self._option_string_actions)}")

    def _meant(self, word: str, choices: Sequence[str] | dict[str, Any]) -> str:
        from difflib import get_close_matches  # only who mistypes waits for it

        close = get_close_matches(word, choices, 1)
        return f"; did you mean {close[0]}?" if close else f"; see {self.prog} --help"


def _is_agent(word: str) -> bool:
    """Whether a command that acp-proxy does not have is an agent's: one that is known, or a program on this machine."""
    from shutil import which

    from acp_proxy.setup.known import KNOWN

    return word in KNOWN or which(word) is not None


def _listed(names: Sequence[str], last: str) -> str:
    """`a, b or c`."""
    return f" {last} ".join(", ".join(names).rsplit(", ", 1))
