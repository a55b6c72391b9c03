"""A provider's API on this machine: gives the pages of made bills, and can be told to answer otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct, field, json

from acp_proxy.bills import EPOCH
from tests.bills.made import Call, anthropic

KEY = "sk-ant-admin01-secret"


class Reply(Struct):
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0  # bytes that are announced and never come


Wire = Callable[[str, Mapping[str, list[str]], int], Reply]
"""Path, query and the number of the request (from 0) -> what is answered."""


class Api(Struct):
    url: str
    seen: list[tuple[str, Mapping[str, list[str]], Mapping[str, str]]]  # path, query, headers


@contextmanager
def serving(answer: Wire) -> Iterator[Api]:
    seen: list[tuple[str, Mapping[str, list[str]], Mapping[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            number = len(seen)
            seen.append((parts.path, query, {name.lower(): value for name, value in self.headers.items()}))
            reply = answer(parts.path, query, number)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) + reply.cut))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield Api(f"http://127.0.0.1:{server.server_address[1]}", seen)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def paged(of: Mapping[str, Sequence[Any]]) -> Wire:
    """The pages of each path, whose tokens are `next-1`, `next-2` …; each page is a list of buckets."""

    def answer(path: str, query: Mapping[str, list[str]], number: int) -> Reply:
        pages = of.get(path)
        if pages is None:
            return Reply(404)
        at = int(query.get("page", ["next-0"])[0].removeprefix("next-"))
        more = at + 1 < len(pages)
        return said({"data": pages[at], "has_more": more, "next_page": f"next-{at + 1}" if more else None})

    return answer


def daily(call_on: Callable[[int], Call]) -> Wire:
    """Pages of Anthropic's for whatever days are asked for, with one call on each."""

    def answer(path: str, query: Mapping[str, list[str]], _: int) -> Reply:
        first, end = (date.fromisoformat(query[name][0][:10]) for name in ("starting_at", "ending_at"))
        calls = [call_on(day - EPOCH) for day in range(first.toordinal(), end.toordinal())]
        kind = "cost" if path.endswith("cost_report") else "usage"
        pages = [file.content for file in anthropic(calls) if file.name.startswith(kind)]
        at = int(query.get("page", ["0"])[0])
        return Reply(body=pages[at].replace(b'"opaque"', f'"{at + 1}"'.encode()))

    return answer


def said(value: Any) -> Reply:
    return Reply(body=json.Encoder(decimal_format="number").encode(value), headers={"Content-Type": "application/json"})
