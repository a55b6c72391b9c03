"""Writes of budgets to the ledger other than rows: decisions, notices, and released holds. Waits for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.core.budget import Account
from acp_proxy.core.notice import Notice
from acp_proxy.interceptors.budgets.rules import Lease
from acp_proxy.interceptors.budgets.running_turns import Running, Turns
from acp_proxy.ledger.budgets import Decision
from acp_proxy.ledger.worker import LedgerWorker


class LedgerWrites:
    """The writes of one process: run in the ledger's thread, in order, and retried until they succeed."""

    def __init__(self, worker: LedgerWorker, turns: Turns, lease: Lease | None = None) -> None:
        self._lease = lease
        self._worker = worker
        self._turns = turns

    def count(self, accounts: Sequence[Account], decision: Decision) -> None:
        self._worker.do(lambda ledger: ledger.count_decisions([(account, decision) for account in accounts]))

    def note(self, notice: Notice) -> None:
        """For people elsewhere."""
        self._worker.do(lambda ledger: ledger.outbox.note([notice]))

    def give_up_lease(self, running: Running) -> None:
        """What was drawn for a turn that used nothing may be drawn again."""
        if self._lease is not None and running.lease is not None:
            self._lease.charge(running.id, {})
            self._lease.settled(running.id)
            running.lease = None

    def release(self, turn: str) -> None:
        """Release the holds of a turn that used nothing and never will. Runs after earlier jobs, so no hold stays."""
        running = self._turns.forget(turn)
        if running is not None:
            self.give_up_lease(running)
            organisation = running.origin.organisation
            self._worker.do(lambda ledger: ledger.release(organisation, turn))
