"""Errors as answers: problem documents of RFC 9457, each with one line for the user."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from starlette.responses import Response

from acp_proxy.ledger.hub.wire import Problem

TYPE = "application/problem+json"


class RefusedError(Exception):
    """What was asked is not answered; the text says why, and `status` is that of HTTP."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def problem(status: int, detail: str = "", **headers: str) -> Response:
    body = msgspec.json.encode(Problem(HTTPStatus(status).phrase, status, detail))
    return Response(
        body, status, headers={name.replace("_", "-"): value for name, value in headers.items()}, media_type=TYPE
    )
