"""The API: a route for each call of `ledger/hub`, with who asks by their token, and one line for what goes wrong."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import cache
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from acp_proxy.core.budget.lease import Terms
from acp_proxy.hub.api import (
    budgets,
    corrections,
    leases,
    operation,
    people,
    policy,
    reports,
    requests,
    restoring,
    spending,
    turns,
)
from acp_proxy.hub.api.claims import ByToken, Claims
from acp_proxy.hub.api.desk import Answer, Batching, Desk, Dialect, Tagged
from acp_proxy.hub.api.problems import RefusedError, problem
from acp_proxy.hub.gathering import Gathering
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.ledgers import Ledgers
from acp_proxy.hub.openapi import document
from acp_proxy.hub.places import Places
from acp_proxy.hub.policy import CurrentPolicies
from acp_proxy.ledger import LedgerError, LedgerUnavailableError, RowRefusedError, Warn
from acp_proxy.ledger.hub.wire import LARGEST_BODY, NDJSON, WITHOUT_BODY, Call, Nothing
from acp_proxy.ledger.sql_ledger import SqlLedger
from acp_proxy.system.decoding import json_decoder
from acp_proxy.system.errors import where_of

ANSWERS: Sequence[Answer] = (
    *turns.ANSWERS,
    *budgets.ANSWERS,
    *reports.ANSWERS,
    *operation.ANSWERS,
    *policy.ANSWERS,
    *corrections.ANSWERS,
    *leases.ANSWERS,
    *people.ANSWERS,
    *restoring.ANSWERS,
    *requests.ANSWERS,
    *spending.ANSWERS,
)
TERMS = Terms()

Identify = Callable[[str | None, int], Awaitable[Identity]]
"""Who sends this `Authorization`, at a time (Unix s). Raises RefusedError."""

Endpoint = Callable[[Request], Awaitable[Response]]
AtDesk = Callable[[SqlLedger], Desk]  # once a ledger is there

MOST_UNDER_WAY = 16 * LARGEST_BODY  # bytes of all bodies that are read at one moment: slow clients keep theirs long
_QUIET = 10 * 10**9  # ns


class Api:
    """`routes` are those of all calls. `clock` is Unix time in ns."""

    def __init__(
        self,
        ledgers: Ledgers,
        identify: Identify,
        warn: Warn,
        *,
        claims: Callable[[Identity], Claims] = ByToken,
        clock: Callable[[], int] = time.time_ns,
        lease: Terms = TERMS,
        url: str = "",
    ) -> None:
        self._ledgers = ledgers
        self._identify = identify
        self._warn = warn
        self._claims = claims
        self._clock = clock
        self._policies = CurrentPolicies()
        self._places = Places()
        self._lease = lease
        self._told: dict[str, int] = {}  # when each event was logged last
        self._url = url.rstrip("/")
        self._under_way = 0  # bytes of bodies that have not come to their end
        self._gathered = {
            each.call.path: Gathering(ledgers.ask_first, _answering(each.batching)) for each in ANSWERS if each.batching
        }
        self.routes = [Route(each.call.path, self._endpoint(each), methods=[each.call.method]) for each in ANSWERS]
        self.routes.append(Route("/v1/openapi.json", lambda _: Response(_described(), media_type="application/json")))

    def _endpoint(self, answer: Answer) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            try:
                return await self._answered(answer, request)
            except RefusedError as error:
                return problem(error.status, str(error))
            except RowRefusedError as error:
                return problem(422, str(error))
            except LedgerUnavailableError as error:
                self._tell("hub.unavailable", answer, error)
                return problem(503, "the ledger does not answer now", Retry_After="1")
            except LedgerError as error:
                self._tell("hub.failed", answer, error)
                return problem(500, "the ledger cannot be used; the hub's log says why")
            except ValueError as error:
                return problem(400, " ".join(str(error).split()))
            except Exception as error:  # a fault of ours: nobody else would hear of it
                self._tell("hub.fault", answer, error)
                return problem(500, "a fault of the hub; its log says where")

        return endpoint if answer.dialect is None else _translated(endpoint, answer.dialect)

    def _tell(self, event: str, answer: Answer, error: Exception) -> None:
        """For who runs the hub: the text may name its file, or the server and the database. Once in some seconds."""
        now = self._clock()
        if not 0 <= now - self._told.get(event, -_QUIET) < _QUIET:
            self._told[event] = now
            said = str(error) if isinstance(error, LedgerError) else where_of(error)
            self._warn(event, path=answer.call.path, error=said)

    async def _answered(self, answer: Answer, request: Request) -> Response:
        who = await self._identify(_authorization(request, answer.dialect), self._clock() // 10**9)
        if who.role not in answer.roles:
            raise RefusedError(403, f"expected the role {' or '.join(answer.roles)}, not {who.role}")
        if not (who.may("meter") or (who.may("read") and not answer.writes)):
            raise RefusedError(403, f"this token is good for {', '.join(who.scopes)} only")
        asked = await self._asked(answer.call, request)
        claims, now, match = self._claims(who), self._clock(), request.headers.get("if-match")

        def desk(ledger: SqlLedger) -> Desk:
            return Desk(ledger, who, claims, now, self._policies, match, self._lease, self._url, self._places)

        def question(ledger: SqlLedger) -> Any:
            return answer.give(desk(ledger), asked)

        if answer.call.streams:
            return StreamingResponse(await _begun(self._lines(question)), media_type=NDJSON)
        if answer.batching and answer.batching.fits(asked):
            given = await self._gathered[answer.call.path].ask((desk, asked))
        else:
            given = await self._ledgers.ask(_without_refusals(question), writes=answer.writes)
        if isinstance(given, Exception):
            raise given
        if isinstance(given, Nothing):
            return Response(status_code=204)
        if isinstance(given, Tagged):
            return _tagged(given, request)
        return Response(msgspec.json.encode(given), media_type="application/json")

    async def _asked(self, call: Call[Any, Any], request: Request) -> Any:
        """What is asked: by the path, and the body or where a call has none the query. Raises RefusedError."""
        if call.asks is Nothing:
            return Nothing()
        try:
            if call.method in WITHOUT_BODY:
                body = msgspec.json.encode(_query(request) | request.path_params)
            else:
                body = await self._body(request)
                if request.path_params:
                    fields = json_decoder(dict[str, Any]).decode(body)
                    body = msgspec.json.encode(fields | request.path_params)
            return json_decoder(call.asks).decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RefusedError(400, " ".join(str(error).split())) from error

    async def _body(self, request: Request) -> bytes:
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json":  # which no form of another site can send
            raise RefusedError(415, "expected application/json")
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                self._under_way += len(chunk)
                if self._under_way > MOST_UNDER_WAY:
                    raise RefusedError(503, "too much is sent at this moment; the same call may succeed later")
                if len(body) > LARGEST_BODY:
                    raise RefusedError(413, f"expected at most {LARGEST_BODY // 2**20} MiB")
        except ClientDisconnect as error:
            raise RefusedError(400, "the request ended too early") from error
        finally:
            self._under_way -= len(body)
        return bytes(body)

    async def _lines(self, question: Callable[[SqlLedger], Any]) -> AsyncIterator[bytes]:
        """The last one is empty: without it the answer was cut."""
        async for some in self._ledgers.stream(question):
            yield b"".join(msgspec.json.encode(each) + b"\n" for each in some)
        yield b"\n"


@cache
def _described() -> bytes:
    """The same for every hub of this build. It takes 35 ms, which nobody waits for who starts one."""
    return msgspec.json.encode(document(ANSWERS))


def _answering(batching: Batching) -> Callable[[SqlLedger, Sequence[tuple[AtDesk, Any]]], Sequence[Any]]:
    return lambda ledger, asked: batching.give([(desk(ledger), each) for desk, each in asked])


def _authorization(request: Request, dialect: Dialect | None) -> str | None:
    key = request.headers.get(dialect.key) if dialect else None
    return request.headers.get("authorization") or (None if key is None else f"Bearer {key}")


def _translated(endpoint: Endpoint, dialect: Dialect) -> Endpoint:
    async def translated(request: Request) -> Response:
        return dialect.answered(await endpoint(request))

    return translated


def _tagged(given: Tagged[Any], request: Request) -> Response:
    headers = {"ETag": given.tag, "Vary": "Authorization", "Cache-Control": "private, no-cache"}
    if request.method == "GET" and request.headers.get("if-none-match") == given.tag:
        return Response(status_code=304, headers=headers)
    return Response(msgspec.json.encode(given.answer), media_type="application/json", headers=headers)


def _without_refusals(question: Callable[[SqlLedger], Any]) -> Callable[[SqlLedger], Any]:
    """What is refused comes back as a value: as an error it would cost the ledger's connection."""

    def answered(ledger: SqlLedger) -> Any:
        try:
            return question(ledger)
        except RowRefusedError as error:
            return error

    return answered


async def _begun(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """With its first part there: what goes wrong before it is a status."""
    first = await anext(lines)

    async def all_of_them() -> AsyncIterator[bytes]:
        yield first
        async for each in lines:
            yield each

    return all_of_them()


def _query(request: Request) -> dict[str, Any]:
    """A name that ends with brackets has all its values, any other the last."""
    query = request.query_params
    return {name: query.getlist(name) if name.endswith("[]") else query[name] for name in query}
