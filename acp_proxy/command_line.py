"""A parser that says in one line what is wrong with a command line, and what was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from acp_proxy.usage_error import UsageError as UsageError


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations: an option added later must not change a script."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        if message.endswith("required: ACTION"):
            actions = next(each.choices or () for each in self._actions if each.metavar == "ACTION")
            expected = " or ".join(", ".join(actions).rsplit(", ", 1))
            raise UsageError(f"{self.prog.split()[-1]}: expected {expected}; see {self.prog} --help")
        raise UsageError(f"{message}; see {self.prog} --help")

    _asked: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Whatever is left over is complained of here, where the command is known that does not have it."""
        self._asked = args or ()
        found, unknown = super().parse_known_args(args, namespace)
        if not unknown:
            return found, unknown
        if not unknown[0].startswith("-"):
            self.error(f"one word too many: {unknown[0]!r}")
        raise self._unknown_option(unknown[0])

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = list(action.choices)
        if isinstance(action, argparse._SubParsersAction):
            word = str(action.metavar).lower()
            for before in self._asked[: self._asked.index(value)]:  # of which it may be what was meant as the value
                if before.startswith("-") and before.partition("=")[0] not in self._option_string_actions:
                    raise self._unknown_option(before)
            raise UsageError(f"unknown {word} {value}{self._meant(value, [*choices, *self._option_string_actions])}")
        name = action.option_strings[0] if action.option_strings else f"{self.prog.split()[-1]}"
        listed = ", ".join(choices[:-1])
        raise UsageError(f"{name}: expected {listed} or {choices[-1]}, not {value!r}")

    def _unknown_option(self, option: str) -> UsageError:
        name = option.partition("=")[0]
        return UsageError(f"unknown option {name}{self._meant(name, self._option_string_actions)}")

    def _meant(self, word: str, choices: Sequence[str] | dict[str, Any]) -> str:
        from difflib import get_close_matches  # only who mistypes waits for it

        close = get_close_matches(word, choices, 1)
        return f"; did you mean {close[0]}?" if close else f"; see {self.prog} --help"
