"""Budgets, accounts and standings as tests of the budgets say them: amounts of money as text, times as local text."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from acp_proxy.core.budget import Account, Budget, Limit, Standing, accounts_for
from acp_proxy.core.money import Money
from acp_proxy.core.scope import Subject
from acp_proxy.core.windows import SECOND, Window

ALICE = Subject("acme", "alice", "core", "shop", "laptop", "claude", "opus", "s1", "p1")


def instant(text: str, zone: tzinfo = UTC) -> int:
    """Unix ns of a local time; the first of two."""
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) * SECOND


NOW = instant("2026-11-21T10:00")


def usd(text: str) -> int:
    return Money.of(text, "USD").nano


def limit(text: str) -> Limit:
    """`30 USD`, `1000 tokens`, `5 turns`."""
    amount, unit = text.split()
    return Limit(int(amount) if unit in ("tokens", "turns") else Money.of(amount, unit).nano, unit)


def budget(amount: str = "30 USD", window: str = "day", name: str = "daily", **rest: Any) -> Budget:
    return Budget(**{"name": name, "layer": "user", "window": Window.parse(window), "limit": limit(amount), **rest})


def accounts(*budgets: Budget, subject: Subject = ALICE, at: int = NOW, turn: str = "t1") -> tuple[Account, ...]:
    return accounts_for(budgets, subject, at, ZoneInfo, turn)


def account(of: Budget, subject: Subject = ALICE, at: int = NOW, turn: str = "t1") -> Account:
    (only,) = accounts(of, subject=subject, at=at, turn=turn)
    return only


def standing(of: Budget, spent: int = 0, held: int = 0, granted: int = 0, **rest: Any) -> Standing:
    return Standing(account(of), spent, held, granted, **rest)
