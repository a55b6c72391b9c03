"""What no sound proxy sends: each is one clear answer, and nothing of it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPConnection

import pytest
from msgspec.structs import replace

from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import Query, Row
from acp_proxy.ledger.hub import leases, questions, wire
from acp_proxy.ledger.hub.connection import written
from acp_proxy.system.decoding import json_decoder
from harness.rows import NOON, line, row
from tests.hub.api.asking import about
from tests.hub.api.conftest import MALLORY, Ask


def _with_line(**fields: object) -> Row:
    return row(replace(line(), **fields), id="bad")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (_with_line(cost=Money(-1, "USD")), "expected no negative cost"),
        (_with_line(usage=Usage(input=-1)), "expected no negative count of tokens"),
        (_with_line(usage=Usage(input=2**63)), "does not fit"),
        (row(id="bad", at=NOON + 365 * DAY), "its time is more than a day ahead of the hub's clock"),
        (row(id="bad" * 50), "expected an id of 1 to 64 ASCII characters"),
        (row(id="é"), "expected an id of 1 to 64 ASCII characters"),
    ],
    ids=["negative money", "negative tokens", "huge", "next year", "long id", "strange id"],
)
def test_a_bad_row_is_refused_alone(ask: Ask, bad: Row, said: str) -> None:
    status, body = ask("developer", wire.APPEND, wire.Rows([row(id="good"), bad, row(id="good too")]))
    found = json_decoder(wire.Appended).decode(body)
    assert (status, found.new) == (200, 2)
    assert [each.id for each in found.refused] == [bad.entry.id]
    assert said in found.refused[0].detail
    _, stored = ask("finance", questions.EXISTING, questions.Ids("default", ["good", "good too", bad.entry.id]))
    assert sorted(json_decoder(list[str]).decode(stored)) == ["good", "good too"]


def test_rows_come_in_once_however_often_they_are_sent(ask: Ask) -> None:
    rows = wire.Rows([row(id="once")])
    news = [json_decoder(wire.Appended).decode(ask("developer", wire.APPEND, rows)[1]).new for _ in range(3)]
    assert news == [1, 0, 0]


def test_more_rows_than_a_call_may_have_are_refused_by_their_number(ask: Ask) -> None:
    status, body = ask("developer", wire.APPEND, wire.Rows([row()] * (wire.MOST_ROWS + 1)))
    assert (status, json.loads(body)["detail"]) == (413, "expected at most 5000 rows")


@pytest.fixture
def sent(address: str) -> Callable[..., tuple[int, str, str]]:
    """Sends bytes to a path; status, content type and detail of the answer."""

    def send(
        path: str, body: bytes, content_type: str = "application/json", token: str = "developer", method: str = "POST"
    ) -> tuple[int, str, str]:
        connection = HTTPConnection(address.removeprefix("http://"), timeout=20)
        headers = {"Content-Type": content_type, "Authorization": f"Bearer {token}"}
        connection.request(method, path, body, headers)
        with connection.getresponse() as response:
            answer = json.loads(response.read())
        connection.close()
        return response.status, response.headers["content-type"], answer["detail"]

    return send


PROBLEM = "application/problem+json"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"rows": 1}', b"\xff", b"[" * 100_000], ids=range(7))
def test_a_body_that_is_not_what_is_asked_for_is_one_line(
    sent: Callable[..., tuple[int, str, str]], body: bytes
) -> None:
    status, content_type, detail = sent("/v1/rows", body)
    assert (status, content_type) == (400, PROBLEM)
    assert len(detail.splitlines()) == 1


def test_a_body_that_is_too_large_is_not_read_to_its_end(sent: Callable[..., tuple[int, str, str]]) -> None:
    status, _, detail = sent("/v1/rows", b" " * (wire.LARGEST_BODY + 1))
    assert (status, detail) == (413, "expected at most 16 MiB")


def test_what_a_form_of_another_site_could_send_is_no_question(sent: Callable[..., tuple[int, str, str]]) -> None:
    assert sent("/v1/rows", b'{"rows":[]}', "text/plain")[0] == 415


@pytest.mark.parametrize("token", ["", "forged", "développeur"])
def test_without_a_token_of_this_hub_nothing_is_answered(sent: Callable[..., tuple[int, str, str]], token: str) -> None:
    status, content_type, _ = sent("/v1/rows", b'{"rows":[]}', token=token)
    assert (status, content_type) == (401, PROBLEM)


def test_an_unknown_dimension_is_one_line(ask: Ask) -> None:
    for call in (questions.ROWS, questions.SESSIONS):
        status, body = ask("finance", call, questions.Wanted(Query(where=(("colour", "red"),))))
        assert (status, json.loads(body)["detail"]) == (400, "no dimension of the ledger: 'colour'")
    status, body = ask("finance", questions.RECENT_SESSIONS, questions.RecentSessions("default", 1, query=COLOUR))
    assert (status, json.loads(body)["detail"]) == (400, "no dimension of a session: 'colour'")


COLOUR = Query(where=(("colour", "red"),))
INJECTED = "user_id = 'bob' OR t.user_id"


def test_the_name_of_a_dimension_becomes_no_sql(sent: Callable[..., tuple[int, str, str]]) -> None:
    """Of an account that a proxy asks about, with each call that takes one."""
    taking = set()
    for call, question in about(MALLORY).items():
        _, body = written(call, question)
        named = b'["organisation","default"]'
        if body is None or named not in body:
            continue
        taking.add(call.path)
        bent = body.replace(named, named + b"," + json.dumps([INJECTED, "x"]).encode(), 1)
        status, _, detail = sent(call.path, bent, method=call.method)
        assert (status, detail.partition(" - ")[0]) == (400, f"no dimension of an account: {INJECTED!r}"), call.path
    assert taking >= {call.path for call in (wire.ADMIT, wire.STANDINGS, wire.ANNOUNCE, wire.DECISIONS, leases.LEND)}
