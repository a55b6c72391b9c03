"""URLs of several hosts: each is tried by itself, in their order, with what the URL says of all."""

from __future__ import annotations

import pytest

from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.postgres_address import Address
from tests.cases import each_of


@each_of(
    [
        ("//u:p%40@a:1,b:2/l", ["//u:p%40@a:1/l", "//u:p%40@b:2/l"]),
        ("//u@a,b/l?port=6000", ["//u@a/l?port=6000", "//u@b/l?port=6000"]),
        ("//u@[::1]:1,b/l?sslmode=require", ["//u@[::1]:1/l?sslmode=require", "//u@b/l?sslmode=require"]),
        ("///l?host=a,b&port=1,2", ["/l?host=a&port=1", "/l?host=b&port=2"]),
        ("///l?host=/run/pg,b", ["/l?host=%2Frun%2Fpg", "/l?host=b"]),
        (
            "//a,b/l?target_session_attrs=read-write",
            ["//a/l?target_session_attrs=read-write", "//b/l?target_session_attrs=read-write"],
        ),
        (
            "//a,b/l?target_session_attrs=prefer-standby",
            [f"//{host}/l?target_session_attrs={wanted}" for wanted in ("standby", "any") for host in "ab"],
        ),
    ],
    name=lambda case: case[0],
)
def test_each_host_is_one_address(case: tuple[str, list[str]]) -> None:
    url, expected = case
    assert Address.of(f"postgresql:{url}").dsns == tuple(f"postgresql:{dsn}" for dsn in expected)


def test_ports_that_are_not_as_many_as_hosts_are_refused() -> None:
    with pytest.raises(LedgerError, match=r"^ledger URL with several ports, expected as many as there are hosts$"):
        Address.of("postgresql:///l?host=a,b,c&port=1,2")


def test_neither_user_nor_password_is_shown() -> None:
    assert repr(Address.of("postgresql://alice:secret@a,b/l")) == "Address('postgresql://a,b:5432/l')"
