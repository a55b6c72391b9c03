"""Bills of providers: files that people downloaded -> what was billed. Pure: bytes in, bill lines out, no network.

One reader per provider. A page that is given twice counts once, in whatever order pages come. Fields that no reader
knows are ignored; models and currencies that nobody knows are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage

Provider = Literal["anthropic", "openai", "litellm", "csv"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
By = Literal["day", "model", "user", "key"]  # what lines of a bill are added up by
BY: tuple[By, ...] = get_args(By)
Part = Literal["input", "cached_read", "cached_write", "cached_write_1h", "output"]
"""The kind of tokens that an amount is for, by the keys of `[prices]`."""

Count = Annotated[int, Meta(ge=0, le=2**53)]  # a sum of some hundred still fits a ledger's column
EPOCH = date(1970, 1, 1).toordinal()
DAYS = range(date(2262, 1, 1).toordinal() - EPOCH)  # those that 63 bits of nanoseconds hold


class BillError(ValueError):
    """A file is not what was expected; the text is one line for the user and names the file."""


class File(Struct, frozen=True):
    name: str
    content: bytes


class BillLine(Struct, frozen=True):
    """What was billed of one kind on one day: tokens, an amount, or both. None is what the bill does not say."""

    day: int  # of UTC, since 1970, as the ledger has it
    model: str | None = None
    key: str | None = None  # the id of an API key, or what its owner calls it
    user: str | None = None
    item: str | None = None  # what else than tokens of a model the amount is for, such as `web_search`
    part: Part | None = None  # which tokens the amount is for; None: all of them
    usage: Usage = Usage()  # `cached_write` are those for five minutes, `output` has thinking inside
    cached_write_1h: int = 0
    amount: Money | None = None
    amounts: int = 0  # how many amounts of the bill this one is the sum of
    decimals: int = 0  # the most that one of these was given with, in units of the currency

    @property
    def tokens(self) -> int:
        return self.usage.total + self.cached_write_1h


class Bill(Struct, frozen=True):
    """All files of a provider together. On a day that `token_days` lacks it is not known what was used."""

    provider: Provider
    lines: tuple[BillLine, ...]
    token_days: frozenset[int]
    money_days: frozenset[int]
    tells_caches: bool = True  # False: caches are inside `input`, and nobody knows how much of it

    @property
    def days(self) -> frozenset[int]:
        return self.token_days | self.money_days


def date_of(day: int) -> str:
    """`2026-11-01`, of a day as in a `BillLine`."""
    return date.fromordinal(day + EPOCH).isoformat()


def read(provider: Provider, files: Iterable[File], columns: Mapping[str, str]) -> Bill:
    """The bill in some files. `columns` are names of a CSV's columns by what they hold. Raises BillError."""
    match provider:
        case "anthropic":
            from acp_proxy.bills import anthropic

            return anthropic.read(files)
        case "openai":
            from acp_proxy.bills import openai

            return openai.read(files)
        case "litellm":
            from acp_proxy.bills import litellm

            return litellm.read(files)
        case "csv":
            from acp_proxy.bills import spreadsheet

            return spreadsheet.read(files, columns)
