"""The document of the API beside what answers."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any

import pytest

from acp_proxy.hub.api import ANSWERS
from tests.hub.api.asking import about
from tests.hub.api.conftest import MALLORY, ROLES, Ask
from tests.hub.api.described import check_answer


@pytest.fixture
def document(address: str) -> Any:
    connection = HTTPConnection(address.removeprefix("http://"), timeout=20)
    connection.request("GET", "/v1/openapi.json")
    with connection.getresponse() as response:
        found = json.loads(response.read())
    connection.close()
    return found


def test_it_names_each_route_once(document: Any) -> None:
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert described == {(answer.call.path, answer.call.method) for answer in ANSWERS}
    assert len(described) == len(ANSWERS)


@pytest.mark.parametrize("role", ROLES)
def test_each_answer_to_each_role_is_as_described(document: Any, ask: Ask, role: str) -> None:
    asked = about(MALLORY)
    for answer in ANSWERS:
        described = document["paths"][answer.call.path][answer.call.method.lower()]["responses"]
        status, body = ask(role, answer.call, asked[answer.call])
        check_answer(document, described[str(status)], body)
