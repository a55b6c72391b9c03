"""What of a URL is libpq's, what is ours, and what is shown."""

from __future__ import annotations

import pytest

from acp_proxy.ledger.postgres_address import Address


@pytest.mark.parametrize(
    ("url", "rest"),
    [
        ("postgresql://u:p%40@a:1,b:2/l?pgbouncer=true", "postgresql://u:p%40@a:1,b:2/l?"),
        ("postgresql://a/l?sslmode=require&pgbouncer=1&password=a+b", "postgresql://a/l?sslmode=require&password=a+b"),
        ("postgresql:///l?host=/run/pg", "postgresql:///l?host=/run/pg"),
        ("postgresql://a/with a space", "postgresql://a/with%20a%20space?"),
        ("postgresql://a/l?options=-c%20jit=off", "postgresql://a/l?options=-c%20jit%3Doff"),
    ],
)
def test_libpq_is_given_all_but_what_is_ours_as_it_is_written(url: str, rest: str) -> None:
    assert Address.of(url).dsn == rest


@pytest.mark.parametrize(("option", "pooled"), [("?pgbouncer=true", True), ("?pgbouncer=false", False), ("", False)])
def test_a_url_may_say_that_there_is_a_pooler(option: str, pooled: bool) -> None:
    assert Address.of(f"postgresql://a/l{option}").pooled is pooled


def test_neither_user_nor_password_is_shown() -> None:
    assert repr(Address.of("postgresql://alice:secret@a,b/l")) == "Address('postgresql://a,b:5432/l')"
