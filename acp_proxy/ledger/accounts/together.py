"""Prompts of several that ask at one moment: a server that is certain holds for all of them in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from msgspec import Struct

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.ledger import OpenTurn
from acp_proxy.ledger.accounts.holding import Taking
from acp_proxy.ledger.accounts.standings import Question
from acp_proxy.ledger.budgets import Held
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Run

Lock = Callable[[Run, Sequence[Account]], None]


class Prompt(Struct, frozen=True):
    """What `hold` is asked for one of them; times are Unix ns."""

    turn: OpenTurn
    wants: Sequence[tuple[Account, HoldSize]]
    now: int
    until: int
    unpriced: bool = False


class Together:
    """Those of one organisation for which a server can hold at once. Others are asked for one by one."""

    def __init__(self, prompts: Sequence[Prompt], dialect: Dialect) -> None:
        of_one = prompts[0].turn.origin.organisation if prompts else ""
        found = [
            (number, *_prepared(prompt, dialect))
            for number, prompt in enumerate(prompts)
            if prompt.wants and prompt.turn.origin.organisation == of_one
        ]
        # In the order of what they lock, as everybody does who locks several.
        self._asked = sorted(
            (each for each in found if not each[1].is_denied),
            key=lambda each: (sorted(account.key for account in each[2].accounts), each[0]),
        )

    def __len__(self) -> int:
        return len(self._asked)

    def ask(self, lock: Lock, run: Run) -> list[list[tuple[Any, ...]]]:
        """Each statement sees what those before it hold."""
        lock(run, [account for _, _, question in self._asked for account in question.accounts])
        return run.each([taking.at_once(question) for _, taking, question in self._asked], last=True)

    def held(self, answers: Sequence[list[tuple[Any, ...]]]) -> Iterator[tuple[int, Taking, Held]]:
        """By their numbers, those for which the server was certain."""
        for (number, taking, question), rows in zip(self._asked, answers, strict=True):
            held = taking.admitted(question, rows)
            if held is not None:
                yield number, taking, held


def _prepared(prompt: Prompt, dialect: Dialect) -> tuple[Taking, Question]:
    accounts = list(map(itemgetter(0), prompt.wants))
    taking = Taking(prompt.turn, prompt.wants, prompt.until, unpriced=prompt.unpriced)
    return taking, Question(accounts, prompt.now, dialect, prompt.turn.id)
