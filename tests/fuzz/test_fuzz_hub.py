"""A hub as it is started, asked whatever comes: by who has a token, who has half of one, and who speaks no HTTP."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.hub.api import ANSWERS
from acp_proxy.hub.auth.access_tokens import AccessTokens
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.families import Family
from acp_proxy.hub.store.people import Holder
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub.connection import written
from acp_proxy.ledger.hub.wire import WITHOUT_BODY, Call
from harness.faults.hubs import HubProcess
from harness.rows import row
from tests.fuzz.limits import EXAMPLES, FUZZ
from tests.fuzz.mutations import mutated, seeds
from tests.hub.api.asking import about
from tests.hub.api.conftest import BOB, MALLORY

SECRET = b"secret-of-bob"
HOUR = 3600
CALLS = [answer.call for answer in ANSWERS]
_ASKED = about(MALLORY)
BODIES = [body for call in CALLS if (body := written(call, _ASKED[call])[1])]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
).map(lambda value: json.dumps(value).encode())


class House:
    """A hub with rows of bob's, and the tokens of mallory, who is a developer."""

    def __init__(self, root: Path) -> None:
        url = f"sqlite:///{root}/ledger.db"
        now = int(time.time())
        with closing(open_ledger(url, journals=())) as ledger:
            ledger.append([row(origin=replace(BOB, project=SECRET.decode()), id="row-of-bob")])
            store = Store(ledger.tables, "default")
            self.made, _ = store.tokens.make(Asked("m", "mallory", "developer"), "test", now)
            self.expired, _ = store.tokens.make(Asked("m", "mallory", "developer", expires_at=now - 1), "test", now - 9)
            keys = store.keys.current(now)
            tokens = AccessTokens(keys, store.installation, "default")
            holder = Holder("mallory", "developer", "red", (), ())
            family = Family("f1", "mallory", None, None, None, now, now, now + HOUR)
            self.signed = tokens.sign(holder, family, now)
            self.late = tokens.sign(holder, family, now - 2 * HOUR)
            self.foreign = AccessTokens(keys, "another hub", "default").sign(holder, family, now)
        self.hub = HubProcess(root, url, "hub")
        self.hub.start()

    def ask(self, call: Call[Any, Any], path: str, body: bytes, token: str) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.hub.port, timeout=60)
        with closing(connection):
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request(call.method, path, None if call.method in WITHOUT_BODY else body, headers)
            response = connection.getresponse()
            return response.status, response.read()

    def raw(self, request: bytes) -> bytes:
        with closing(socket.create_connection(("127.0.0.1", self.hub.port), timeout=60)) as connection:
            with suppress(ConnectionError):
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            with suppress(ConnectionError):
                while data := connection.recv(1 << 16):
                    answer += data
        return answer


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("hub"))
    yield house
    house.hub.kill()


@settings(FUZZ, max_examples=EXAMPLES * 2)
@given(st.sampled_from(CALLS), mutated(BODIES) | ANY_JSON | st.binary(max_size=60))
def test_a_hub_answers_a_member_whatever_is_asked_and_tells_nothing_of_others(
    house: House, call: Call[Any, Any], body: bytes
) -> None:
    path, usual = written(call, _ASKED[call])
    for asked in (body, *([_in_place(usual, body)] if usual else [])):
        status, answer = house.ask(call, path, asked, house.made)
        assert status in (200, 204, 304, 400, 403, 404, 409, 412, 413, 422, 429), (call.path, asked, answer)
        assert SECRET not in answer
        if status >= 400:
            assert "\n" not in _said(answer), answer


def _in_place(usual: bytes, body: bytes) -> bytes:
    """What is usually asked, with something else as its last value."""
    return usual[: usual.rfind(b":") + 1] + body + b"}"


def _said(answer: bytes) -> str:
    found = json.loads(answer)
    return str(found["detail"] if "detail" in found else found["error"]["message"])


@FUZZ
@given(st.sampled_from(CALLS), st.data())
def test_no_token_that_is_cut_bent_late_or_foreign_asks_anything(
    house: House, call: Call[Any, Any], data: st.DataObject
) -> None:
    good = [house.made, house.signed]
    bent: Callable[[str], st.SearchStrategy[str]] = lambda token: mutated([token.encode()]).map(  # noqa: E731
        lambda each: each.decode("ascii", "ignore").translate(dict.fromkeys(range(33))).strip()
    )
    token = data.draw(st.sampled_from([house.expired, house.late, house.foreign]) | bent(good[0]) | bent(good[1]))
    path, usual = written(call, _ASKED[call])
    status, answer = house.ask(call, path, usual or b"{}", token)
    assert status in ((200, 204, 400, 403, 404, 409, 412, 422, 429) if token in good else (401, 431)), (token, answer)
    assert SECRET not in answer


@settings(FUZZ, max_examples=EXAMPLES * 2)
@given(mutated(seeds("hub")))
def test_whoever_speaks_no_http_to_a_hub_or_has_no_token_gets_nothing(house: House, request: bytes) -> None:
    answer = house.raw(request)
    assert SECRET not in answer
    assert b"row-of-" not in answer
    assert b" 500 " not in answer.partition(b"\r\n")[0]
    assert house.ask(CALLS[-1], "/livez", b"", "")[0] in (200, 405)
