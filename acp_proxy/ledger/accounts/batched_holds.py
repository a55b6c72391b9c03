"""Prompts of several that ask at one moment: a server that is certain holds for all of them in one transaction.

What is spent and held of an account is added up once for all who want some of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.ledger import OpenTurn
from acp_proxy.ledger.accounts import headroom
from acp_proxy.ledger.accounts.holding import HoldRequest, inserted_together
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


class BatchedHolds:
    """Those of one organisation for which a server can hold at once. Others are asked for one by one."""

    def __init__(self, prompts: Sequence[Prompt], dialect: Dialect) -> None:
        self._dialect = dialect
        self._accounts: dict[str, Account] = {}
        self._prompts: dict[int, tuple[Prompt, HoldRequest]] = {}
        turns = set[str]()
        for number, prompt in enumerate(prompts):
            request = HoldRequest(prompt.turn, prompt.wants, prompt.until, unpriced=prompt.unpriced)
            is_like = prompt.turn.origin.organisation == prompts[0].turn.origin.organisation
            if is_like and prompt.turn.id not in turns and not request.is_denied and self._take(prompt):
                turns.add(prompt.turn.id)
                self._prompts[number] = prompt, request

    def __len__(self) -> int:
        return len(self._prompts)

    def _take(self, prompt: Prompt) -> bool:
        """Whether its accounts are those of the others, as far as they are called the same."""
        wanted = {account.key: account for account, _ in prompt.wants}
        if not wanted or len(wanted) < len(prompt.wants) or any(account.moves for account in wanted.values()):
            return False
        if any(self._accounts.get(key, account) != account for key, account in wanted.items()):
            return False  # of another limit, or another interval
        self._accounts |= wanted
        return True

    def ask(self, lock: Lock, run: Run) -> list[tuple[Any, ...]]:
        """What was found, for `held`. Raises NotAsAssumedError where it is not certain that all of it fits."""
        prompts = [prompt for prompt, _ in self._prompts.values()]
        accounts = list(self._accounts.values())
        needs = Counter[str]()
        for prompt in prompts:
            needs.update({account.key: _most(size) for account, size in prompt.wants})
        question = self._question(prompts, accounts)
        lock(run, accounts)
        return run.each(
            [
                question.asked,
                headroom.refuted(question, [needs[account.key] for account in accounts]),
                *inserted_together(
                    [
                        (request, [(each, _most(size)) for each, size in prompt.wants])
                        for prompt, request in self._prompts.values()
                    ],
                    self._dialect,
                ),
            ],
            last=True,
        )[0]

    def held(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, HoldRequest, Held]]:
        """By their numbers. To each, what those before it hold is held."""
        accounts = list(self._accounts.values())
        prompts = [prompt for prompt, _ in self._prompts.values()]
        found, _ = self._question(prompts, accounts).answered(rows)
        standings: dict[str, Standing] = {each.account.key: each for each in found.standings}
        for number, (prompt, request) in self._prompts.items():
            yield number, request, request.held_of(tuple(standings[account.key] for account, _ in prompt.wants))
            for account, size in prompt.wants:
                standing = standings[account.key]
                standings[account.key] = replace(standing, held=standing.held + _most(size))

    def _question(self, prompts: Sequence[Prompt], accounts: Sequence[Account]) -> Question:
        now, turns = max(prompt.now for prompt in prompts), [prompt.turn.id for prompt in prompts]
        return Question(accounts, now, self._dialect, new=turns)


def _most(size: HoldSize) -> int:
    return max(size.wanted, size.floor)
