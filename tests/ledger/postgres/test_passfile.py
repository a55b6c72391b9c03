"""Which line of a password file is the one for a server, and when none is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_proxy.ledger.postgres.passfile import password_for
from tests.cases import each_of

URL = "postgresql://alice@db.example.com/ledger"
FILE = r"""# *:*:*:*:comment
db.example.com:5433:*:*:port
other:*:*:*:host
*:*:ledgers:*:database
*:*:*:bob:user
too:few:fields:word
db.example.com:5432:ledger:alice:right
\:\:1:*:*:*:six
DB.Example.com:*:*:*:large
localhost:*:a\:b:*:escaped
localhost:*:*:*:local
*:*:*:carol:colon:and\\backslash\\
*:*:*:*:rest
"""


@pytest.mark.parametrize(
    ("dsn", "environ", "password"),
    [
        (URL, {}, "right"),
        ("postgresql://alice@db.example.com:5433/ledger", {}, "port"),
        (URL, {"PGPORT": "5433"}, "port"),
        ("postgresql:///ledger?host=db.example.com&port=5433&user=alice", {}, "port"),
        ("postgresql://bob@db.example.com/ledger", {}, "user"),
        ("postgresql://db.example.com/ledger", {"PGUSER": "bob"}, "user"),
        ("postgresql://alice@db.example.com/ledgers", {}, "database"),
        ("postgresql://alice@db.example.com?dbname=ledgers", {}, "database"),
        ("postgresql://alice@[::1]/ledger", {}, "six"),
        ("postgresql://alice@DB.Example.com:5432/ledger", {}, "large"),
        ("postgresql://alice@/a%3Ab", {}, "escaped"),
        ("postgresql://alice@/ledger", {"PGHOST": "/run/postgresql"}, "local"),
        ("postgresql://alice@%2Frun%2Fpostgresql/ledger", {}, "local"),
        ("postgresql://carol@db.example.com/ledger", {}, "colon:and\\backslash\\"),
        ("postgresql://dave@db.example.com/ledger", {}, "rest"),
        ("postgresql://dave@db.example.com/ledger", {"PGHOST": "other"}, "rest"),  # which the URL decides
    ],
)
def test_the_first_line_that_is_about_a_server_has_its_password(
    dsn: str, environ: dict[str, str], password: str, tmp_path: Path
) -> None:
    file = tmp_path / "pgpass"
    file.touch(0o600)
    file.write_bytes(FILE.encode().replace(b"\n", b"\r\n"))
    assert password_for(dsn, {**environ, "PGPASSFILE": str(file)}) == (password, "")


@each_of(
    [
        ("postgresql://alice:in-it@db.example.com/ledger", {}),
        (f"{URL}?password=in-it", {}),
        (URL, {"PGPASSWORD": "in-it"}),
        (f"{URL}?service=of-ours", {}),
        (URL, {"PGSERVICE": "of-ours"}),
    ],
    name=str,
)
def test_no_file_is_read_where_something_else_decides(case: tuple[str, dict[str, str]]) -> None:
    dsn, environ = case
    assert password_for(dsn, {**environ, "PGPASSFILE": "/"}) == (None, "")


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    def trouble(file: Path) -> str:
        password, why = password_for(f"{URL}?passfile={file}", {"PGPASSFILE": "/"})
        assert password == ""
        return why

    file = tmp_path / "pgpass"
    none = f"no password is given, expected one in {file} or PGPASSWORD"
    assert trouble(file) == none
    file.touch(0o600)
    assert trouble(file) == none
    file.chmod(0o604)
    assert trouble(file) == f"{file} is not used, because others may read it: expected mode 600"
    assert trouble(tmp_path) == f"{tmp_path}: is a directory"


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    file = tmp_path / "pgpass"
    file.touch(0o600)
    file.write_text("*:*:*:alice:right\n")
    assert password_for(URL, {"PGPASSFILE": str(file), "PGPASSWORD": ""}) == ("right", "")
