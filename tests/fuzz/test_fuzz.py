"""Whatever comes in from outside: nothing raises, nothing is changed on the way, and no answer says more than it may.

`scripts/fuzz --minutes N` goes on with other inputs for as long as one likes; what it finds belongs into the corpus.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.catalog import Catalog
from acp_proxy.config import ConfigError, load
from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import parse
from acp_proxy.core.usage import Usage
from acp_proxy.core.wire.framing import Framer, Part
from acp_proxy.core.wire.peek import is_one_a_line, peek_lines, peek_run, split_lines
from acp_proxy.ledger.journal.records import MAGIC, commit, encode, head, read_journal, room
from harness.rows import NOON, row
from tests.ends import Ends
from tests.fuzz.limits import EXAMPLES, FUZZ
from tests.fuzz.mutations import cut, mutated, recorded_lines, seeds
from tests.serve.house import Home, Served

SAID = recorded_lines() + seeds("lines")

said = st.lists(st.tuples(st.sampled_from([Side.CLIENT, Side.AGENT]), mutated(SAID)), min_size=1, max_size=8)
places = st.lists(st.floats(0, 1), max_size=6)
CATALOG = Catalog()
START = b"HTTP/1.1 "
TOKEN = "only-who-knows"


@FUZZ
@given(st.lists(mutated(SAID), min_size=1, max_size=6), places, st.booleans(), st.sampled_from([16, 300, 1 << 18]))
def test_framing_gives_back_every_byte_in_order(lines: list[bytes], places: list[float], may: bool, held: int) -> None:
    data = b"\n".join(lines)
    framer = Framer(lambda _: may, held)
    pieces = [piece for chunk in cut(data, places) for piece in framer.feed(chunk)] + framer.finish()
    assert b"".join(piece.data if isinstance(piece, Part) else piece for piece in pieces) == data


@FUZZ
@given(mutated(SAID))
def test_reading_a_line_never_raises_and_both_ways_of_it_agree(line: bytes) -> None:
    run = line.replace(b"\n", b" ") + b"\n"
    (peek,) = peek_lines(run)
    assert len(split_lines(run)) == 1
    assert len(peek_run(run)) == 1 or not is_one_a_line(run, peek_run(run))
    message = parse(run)
    if message is not None and peek.method is not None:
        assert getattr(message, "method", peek.method) == peek.method


@FUZZ
@given(said, places)
def test_a_relay_changes_nothing_whatever_is_said_and_no_part_of_it_fails(
    said: list[tuple[Side, bytes]], places: list[float]
) -> None:
    """The state of the conversation, the meter and the dispatcher behind real framing."""
    ends = Ends()
    framers = {side: Framer(lambda _: False) for side in Side}
    sent = dict.fromkeys(Side, b"")
    for side, line in said:
        data = line + b"\n"
        sent[side] += data
        for chunk in cut(data, places):
            for run in framers[side].feed(chunk):
                assert isinstance(run, bytes)
                ends.dispatcher.lines(side, run)
    ends.dispatcher.finish()
    assert ends.agent.data == sent[Side.CLIENT]
    assert ends.client.data == sent[Side.AGENT]
    assert [entry for entry in ends.log if entry[0] == "error"] == []


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("config") / "config.toml"


@FUZZ
@given(mutated(seeds("config")))
def test_a_configuration_is_read_or_refused_in_one_line(file: Path, text: bytes) -> None:
    file.write_bytes(text)
    environ = {"HOME": str(file.parent), "USER": "alice"}
    for options, admin in (({"config": str(file)}, file.with_name("none")), ({}, file)):
        complaint = complaint_of(options, environ, admin)
        assert complaint is None or ("\n" not in complaint and complaint.startswith(str(file)))


def complaint_of(options: dict[str, str], environ: dict[str, str], admin: Path) -> str | None:
    try:
        load(options, environ, admin_file=admin)
    except ConfigError as error:
        return str(error)
    return None


@FUZZ
@given(mutated(seeds("models")).map(lambda name: name.decode("utf-8", "replace")) | st.text())
def test_any_name_of_a_model_has_a_price_or_none(name: str) -> None:
    found = CATALOG.find(name)
    priced = CATALOG.price(name, Usage(1000, 1000, 1000, 1000, 1000), NOON)
    assert CATALOG.find(name) == found
    if found is None:
        assert priced.cost is None
    assert (CATALOG.window(name) or 1) > 0
    assert CATALOG.is_alias(name) in (True, False)
    CATALOG.concrete(name)


@FUZZ
@given(st.lists(st.integers(0, 3), max_size=3), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4))
def test_a_journal_that_is_damaged_anywhere_is_still_read(rows: list[int], damage: list[tuple[float, int]]) -> None:
    whole = journal(rows)
    bent = bytearray(whole)
    for where, value in damage:
        bent[int(where * (len(bent) - 1))] = value
    contents = read_journal(bytes(bent))
    if bytes(bent) == whole:
        assert contents is not None
        assert len(contents.rows) + len(contents.open) == len(rows)
    assert contents is not None or bytes(bent[: len(MAGIC)]) != MAGIC


@FUZZ
@given(mutated([*seeds("journal"), head("sqlite:////x")]))
def test_a_file_that_is_no_journal_is_read_as_what_it_is(data: bytes) -> None:
    read_journal(data)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = Home(tmp_path_factory.mktemp("home"))
    home.append([row()])
    with home.serving("--token-file", str(home.token(TOKEN))) as served:
        yield served


@settings(FUZZ, max_examples=EXAMPLES * 2)
@given(mutated(seeds("http")))
def test_whoever_has_no_token_gets_nothing_by_any_request(served: Served, raw: bytes) -> None:
    with served.connected() as connection, suppress(ConnectionError):
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while data := connection.recv(1 << 16):
            answer += data
        heads = [part[part.index(START) :] for part in answer.split(b"\r\n\r\n") if START in part]
        for status in (head.split()[1] for head in heads):
            assert status in (b"200", b"400", b"401", b"403", b"405", b"413", b"431", b"503"), answer
        healthy = [head.lower().split(b"\r\n") for head in heads if head.split()[1] == b"200"]
        assert all(b"content-length: 3" in head for head in healthy), answer  # `ok`: all else is longer, be it packed
        assert b"access-control-" not in answer.lower()
        assert b"<script" not in answer
        assert b"claude-agent-acp" not in answer
        assert b"acp_proxy_" not in answer
    assert served.process.poll() is None


@FUZZ
@given(mutated(seeds("questions")))
def test_whoever_has_the_token_is_answered_whatever_is_asked(served: Served, question: bytes) -> None:
    """With what is asked for, or one line that says what is wrong with the question."""
    target = quote(question, safe="/?&=%+[]").encode()
    head = b"GET /%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n"
    with served.connected() as connection:
        connection.sendall(head % (target.lstrip(b"/"), TOKEN.encode()))
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    status, said = answer.split()[1], answer.partition(b"\r\n\r\n")[2]
    assert status in (b"200", b"400", b"404", b"431"), answer
    if status == b"400" and target.startswith(b"/api/"):
        assert "\n" not in json.loads(said)["error"]
    assert served.process.poll() is None


def journal(rows: list[int]) -> bytes:
    """One with that many kinds of rows: 3 is of a turn that goes on."""
    start = head("sqlite:////x")
    data = [(encode(row(id=f"t{place}", at=NOON + place)), kind == 3) for place, kind in enumerate(rows)]
    file = bytearray(start + bytes(sum(room(each) for each, _ in data) + 64))
    offset = len(start)
    for each, is_open in data:
        commit(file, offset, each, is_open=is_open)  # type: ignore[arg-type]  # a mapping is bytes that can be changed
        offset += room(each)
    return bytes(file)
