"""Warns users that a threshold of a budget is reached: once per window, over all processes and machines.

The ledger decides which process warns. Only the figures in a turn's last line cannot wait for that: they are announced
at once and claimed afterwards, so two turns that end at the same moment may both warn. That a budget does not count
everything is reported once per window to each user, and once in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

from msgspec.structs import replace

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.charge import uncounted
from acp_proxy.core.budget.refusal import uncounted_text, warning_text
from acp_proxy.core.effects import Send
from acp_proxy.core.entry import Entry
from acp_proxy.core.notice import threshold_reached
from acp_proxy.core.stop_reasons import LOST
from acp_proxy.interceptors.budgets.client_messages import ClientMessages
from acp_proxy.interceptors.budgets.running_turns import Running
from acp_proxy.ledger import LedgerError, Warn
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.text.times import zone_info

_Claim = Literal["asked", "ours", "done"]
_UNCOUNTED = 0  # announced as this percent, which is no threshold


class Warnings:
    """The warnings of one process. `claim` is called in the ledger's thread, everything else in the event loop."""

    def __init__(
        self, worker: LedgerWorker, messages: ClientMessages, clock: Callable[[], int], warn: Warn, *, estimate: bool
    ) -> None:
        """`warn` is called in the ledger's thread; without `estimate` agents that report nothing are not counted."""
        self._worker = worker
        self._messages = messages
        self._clock = clock
        self._warn = warn
        self._estimate = estimate
        self._logged: set[tuple[str, str]] = set()  # budgets of which the log has it
        self._claims: dict[tuple[str, int], _Claim] = {}  # by the account's notice key and percent

    def claim(self, ledger: BudgetLedger, standings: Iterable[Standing], user: str) -> None:
        """Thresholds that were reached before this prompt, perhaps unannounced. Raises nothing: warnings can wait."""
        with suppress(LedgerError):
            for standing in standings:
                for percent in standing.crossed(0, standing.spent):
                    key = (standing.account.notice_key, percent)
                    if key not in self._claims:
                        ours = self._announce(ledger, standing, percent, self._clock())
                        self._claims[key] = "ours" if ours else "done"
                key = (standing.account.notice_key, _UNCOUNTED)
                if key not in self._claims and (text := _uncounted(standing)):
                    self._log(standing.account, text)
                    ours = ledger.announce(standing.account.told_to(user), _UNCOUNTED)
                    self._claims[key] = "ours" if ours else "done"

    def on_admission(self, session: str, standings: Iterable[Standing]) -> Iterator[Send]:
        """The warnings to show before the agent begins."""
        for standing in standings:
            ours = [percent for percent in standing.crossed(0, standing.spent) if self._claimed(standing, percent)]
            if ours:
                yield self._warning(session, standing, max(ours), first=True)
            text = _uncounted(standing)
            if text and self._claimed(standing, _UNCOUNTED):
                yield self._messages.say(session, standing.account.budget.name, text, first=True)

    def foresee(self, spends: Iterable[tuple[Standing, int]]) -> None:
        """In mid-turn: claim crossed thresholds, so that the answer is known when the turn ends."""
        for standing, spend in spends:
            for percent in standing.crossed(standing.spent, standing.spent + spend):
                key = (standing.account.notice_key, percent)
                if key not in self._claims:
                    self._claims[key] = "asked"
                    self._worker.do(self._claiming(_after(standing, spend), percent))

    def at_turn_end(self, session: str, spends: Iterable[tuple[Standing, int]]) -> Sequence[Send]:
        """The thresholds that the turn crossed, before the line that ends it."""
        said: list[Send] = []
        for before, spend in spends:
            after = _after(before, spend)
            crossed = before.crossed(before.spent, after.spent)
            ours = [percent for percent in crossed if self._claimed(after, percent, at_once=True)]
            if ours:
                said.append(self._warning(session, after, max(ours)))
        return said

    def uncounted(self, running: Running, entry: Entry, process: str | None) -> Iterator[Send]:
        """That a turn is not counted, or not all of it, before the line that ends it: there may be no next prompt.

        Its window's users were told before where the ledger had such a turn already. Of a turn that ends because a side
        is gone it may not be read: the next prompt says it again.
        """
        for account in running.accounts:
            missed = uncounted(account, running.origin, entry, process)
            text = _uncounted(missed, silent=missed.untold > 0 and not self._estimate)
            key = (_once(account), _UNCOUNTED)
            if text and self._claims.get(key) != "done":
                self._claims[key] = "done"
                read = entry.stop_reason not in LOST
                self._worker.do(partial(self._told, account, running.origin.user, text, read))
                yield self._messages.say(running.session, account.budget.name, text)

    def _told(self, account: Account, user: str, text: str, read: bool, ledger: BudgetLedger) -> None:
        self._log(account, text)
        if read and account.budget.window.name != "turn":  # of which no other turn is
            ledger.announce(account.told_to(user), _UNCOUNTED)

    def _log(self, account: Account, text: str) -> None:
        budget = account.budget.layer, account.budget.name
        if budget not in self._logged:
            self._logged.add(budget)
            self._warn("budget.not_counted", budget=account.budget.name, error=text)

    def _claimed(self, standing: Standing, percent: int, *, at_once: bool = False) -> bool:
        """Whether this process is to warn now; it then counts as done."""
        key = (standing.account.notice_key, percent)
        claim = self._claims.get(key)
        if claim == "done" or (claim != "ours" and not at_once):
            return False
        if claim is None:
            at = self._clock()  # the ledger may get to it when something later has been noted
            self._worker.do(lambda ledger: self._announce(ledger, standing, percent, at))
        self._claims[key] = "done"
        return True

    def _claiming(self, standing: Standing, percent: int) -> Callable[[BudgetLedger], None]:
        at = self._clock()

        def claim(ledger: BudgetLedger) -> None:
            ours = self._announce(ledger, standing, percent, at)
            key = (standing.account.notice_key, percent)
            if self._claims[key] == "asked":
                self._claims[key] = "ours" if ours else "done"

        return claim

    def _announce(self, ledger: BudgetLedger, standing: Standing, percent: int, at: int) -> bool:
        """Whether this process is to warn the user. A notice for webhooks has the highest threshold reached."""
        highest = percent == max(standing.crossed(0, standing.spent))
        notice = threshold_reached(standing, percent, at) if highest else None
        return ledger.announce(standing.account, percent, notice)

    def _warning(self, session: str, standing: Standing, percent: int, *, first: bool = False) -> Send:
        zone = zone_info(standing.account.budget.zone)
        text = warning_text(standing, percent, self._clock(), zone)
        return self._messages.say(session, standing.account.budget.name, text, first=first)


def _uncounted(standing: Standing, *, silent: bool = False) -> str | None:
    return None if standing.account.budget.mode == "shadow" else uncounted_text(standing, silent=silent)


def _once(account: Account) -> str:
    """What something is told under once: each turn that is a window of its own would be told the same."""
    budget = account.budget
    return f"{budget.layer} {budget.name}" if budget.window.name == "turn" else account.notice_key


def _after(standing: Standing, spend: int) -> Standing:
    """As it stands when that is spent, too."""
    return replace(standing, spent=standing.spent + spend)
