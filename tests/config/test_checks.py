"""The least and the most that each value of the configuration may be, and what is just beyond."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acp_proxy.config import checks
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.postgres_address import Address
from tests.cases import each_of

Check: TypeAlias = Callable[[Any], object]

TAKEN: list[tuple[Check, object, object]] = [
    (checks.text, "x" * 200, "x" * 200),
    (checks.tokens, 1, 1),
    (checks.tokens, 10**12, 10**12),
    (checks.price, "1" * 18, "1" * 18),
    (checks.price, "0.25", "0.25"),
    (checks.duration, "1ms", 0.001),
    (checks.duration, "1s", 1.0),
    (checks.duration, "999999m", 59_999_940.0),
    (checks.ledger_url, "sqlite:///x", "sqlite:///x"),
    (checks.ledger_url, "sqlite:///x?synchronous=full", "sqlite:///x?synchronous=full"),
    (checks.amount, "0", 0),
    (checks.amount, "9223372036.85477580", 9_223_372_036_854_775_800),
    (checks.count, 0, 0),
    (checks.count, 2**63 - 1, 2**63 - 1),
    (checks.port, 0, 0),
    (checks.port, 2**16 - 1, 2**16 - 1),
    (checks.percents, [1000, 1, 1], (1, 1000)),
    (checks.hold, 1, 1),
    (checks.hold, "auto", "auto"),
    (checks.ledger_url, "sqlite:///a://b", "sqlite:///a://b"),
    (checks.secret, "x" * 200, "x" * 200),
    (checks.secret, "whsec_a2V5", "whsec_a2V5"),
    (checks.webhook, "http://localhost/", "http://localhost/"),
    (checks.webhook, f"https://h/{'x' * 1990}", f"https://h/{'x' * 1990}"),
]
REFUSED: list[tuple[Check, object]] = [
    (checks.text, "x" * 201),
    (checks.tokens, 0),
    (checks.tokens, 10**12 + 1),
    (checks.tokens, "5"),
    (checks.tokens, True),
    (checks.price, "1" * 19),
    (checks.price, "1."),
    (checks.price, "²"),
    (checks.price, True),
    (checks.price, 1.5),
    (checks.duration, "0s"),
    (checks.duration, "1000000s"),
    (checks.duration, "1sm"),
    (checks.ledger_url, "sqlite:///"),
    (checks.ledger_url, "sqlite:///x?synchronous=extra"),
    (checks.ledger_url, "sqlite://x"),
    (checks.ledger_url, "postgresql://host:port/db"),
    (checks.amount, "1" * 19),
    (checks.amount, "٣"),  # a digit, and no ASCII
    (checks.amount, "9223372036.85477581"),
    (checks.amount, True),
    (checks.count, -1),
    (checks.count, 2**63),
    (checks.port, -1),
    (checks.port, 2**16),
    (checks.port, True),
    (checks.percents, [0]),
    (checks.percents, [1001]),
    (checks.percents, [50, "80"]),
    (checks.hold, 0),
    (checks.hold, "0"),
    (checks.secret, ""),
    (checks.secret, "x" * 201),
    (checks.secret, 5),
    (checks.secret, "whsec_a2V5!"),
    (checks.webhook, "https:///x"),
    (checks.webhook, "http://example.com/"),
    (checks.webhook, f"https://h/{'x' * 1991}"),
]


@each_of(TAKEN)
def test_values_up_to_their_bounds_are_taken_as_the_program_uses_them(case: tuple[Check, object, object]) -> None:
    check, value, expected = case
    assert check(value) == expected


@each_of(REFUSED)
def test_what_is_beyond_is_refused_with_what_was_expected(case: tuple[Check, object]) -> None:
    check, value = case
    with pytest.raises(ValueError, match=r"^expected "):
        check(value)


PIECES = ["host", "h:5432", "h:x", "[::1]", "[", "u:p@", "a/b@", "#", "?", "/", "db", "&", "port=1,2", "%", "é", ","]


@given(st.lists(st.sampled_from(PIECES) | st.sampled_from("/@:?#[]%"), max_size=7).map("".join))
@example("h/db?channel_binding=require")
@example("h/db?port=1,2")
@example("u:p#w@h/db")
def test_no_url_of_a_ledger_is_taken_that_opens_none_and_every_other_is(rest: str) -> None:
    url = f"postgresql://{rest}"
    try:
        Address.of(url)
    except LedgerError:
        opens = False
    else:
        opens = "/" in rest
    if opens:
        assert checks.ledger_url(url) == url
    else:
        with pytest.raises(ValueError, match=r"^expected postgresql://HOST/DATABASE"):
            checks.ledger_url(url)
