"""Tables of configuration files that are kept: always what the text says, and of no secret."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.config.files import Parse, read
from acp_proxy.status.tables import keeping

FILE = Path("/config.toml")
BUDGET = '[[budget]]\nname = "täglich"\nwindow = "day"\nlimit = { amount = "5", currency = "USD" }\n'


@pytest.fixture
def parse(tmp_path: Path) -> Parse:
    return keeping({"HOME": str(tmp_path)})


def kept_in(home: Path) -> list[Path]:
    return list(home.glob(".local/state/acp-proxy/status/*"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        BUDGET,
        BUDGET.replace("\n", "\r\n"),
        "a = 1.0\nb = 1\nc = true\nd = -0.0\ne = 99999999999999999999\nf = 1e400\n",
        "at = 2026-11-01\nnever = nan\n",
        '"" = [[], [{}], ["\\u0000\\uFFFF"]]\n',
    ],
)
def test_what_is_kept_is_what_the_text_says(parse: Parse, text: str) -> None:
    said = repr(tomllib.loads(text.replace("\r\n", "\n")))
    assert [repr(parse(FILE, text)) for _ in range(3)] == [said] * 3


names = st.text("abc ü.'#", min_size=1, max_size=4)


@given(st.dictionaries(names, st.integers() | st.booleans() | names | st.floats(allow_nan=False, width=16), max_size=3))
def test_a_table_that_was_kept_is_the_one_that_was_parsed_whatever_its_values(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, object]
) -> None:
    parse = keeping({"HOME": str(tmp_path_factory.mktemp("home"))})
    text = "".join(f'"{name}" = {_toml(value)}\n' for name, value in table.items())
    assert repr(parse(FILE, text)) == repr(parse(FILE, text)) == repr(table)


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def test_another_text_or_another_file_is_parsed_by_itself(parse: Parse) -> None:
    other = Path("/other.toml")
    assert [parse(FILE, "a = 1"), parse(FILE, "a = 2"), parse(other, "a = 3"), parse(FILE, "a = 2")] == [
        *({"a": 1}, {"a": 2}, {"a": 3}, {"a": 2}),
    ]


@pytest.mark.parametrize("damage", [b"", b"\xff", b"[]", b"{}", b'["a = 1"]', b'["a = 1", [2]]', b'["a = 1", {"a'])
def test_what_is_kept_and_damaged_is_parsed_again(parse: Parse, tmp_path: Path, damage: bytes) -> None:
    parse(FILE, "a = 1")
    (file,) = kept_in(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(damage)
    assert parse(FILE, "a = 1") == {"a": 1}


@pytest.mark.parametrize(
    "text", ['[[notify]]\nsecret = "x"\n', 'ledger.url = "postgres://u:p@h/d"\n', "# notify: x\n", "at = 2026-11-01"]
)
def test_nothing_is_kept_of_a_file_that_may_hold_a_secret_or_that_json_cannot_say(
    parse: Parse, tmp_path: Path, text: str
) -> None:
    assert parse(FILE, text) == tomllib.loads(text)
    assert kept_in(tmp_path) == []


def test_a_byte_order_mark_is_no_part_of_the_text(parse: Parse, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert [read(file, parse).table for _ in range(2)] == [{"a": 1}] * 2
