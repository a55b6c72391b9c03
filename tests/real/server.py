"""The model on loopback, over HTTP: routes to the API that is asked for, streams, and notes who hung up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.real import anthropic, gemini, openai_chat, openai_responses
from tests.real.model import Model
from tests.real.sse import Event

MODELS = [
    {"id": name, "object": "model", "type": "model", "display_name": name} for name in ("mock-large", "mock-small")
]


@contextmanager
def serving(model: Model) -> Iterator[int]:
    """Serves `model` on a free port of 127.0.0.1, which it yields."""
    server = _Server(model)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: Model) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        self.model = model

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Agents that hang up in mid-answer are normal here."""


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0].endswith("/models"):
            self._json({"object": "list", "has_more": False, "models": [], "data": MODELS})
        else:
            self._json({"error": {"message": "not here"}}, 404)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        path, body = self.path.partition("?")[0], json.loads(self._body() or b"{}")
        if path.endswith("/count_tokens"):
            self._json({"input_tokens": 1234})
        elif path.endswith(":countTokens"):
            self._json({"totalTokens": 1234})
        elif path.endswith("/messages"):
            self._complete(anthropic, anthropic.parse(body))
        elif path.endswith("/chat/completions"):
            self._complete(openai_chat, openai_chat.parse(body))
        elif path.endswith("/responses"):
            self._complete(openai_responses, openai_responses.parse(body))
        elif path.endswith((":generateContent", ":streamGenerateContent")):
            self._complete(gemini, gemini.parse(body, path))
        else:
            self._json({"error": {"type": "not_found_error", "message": "not here"}}, 404)

    def _complete(self, api: Any, ask: Any) -> None:
        call, answer = self.server.model.serve(ask, cache_writes=api.CACHE_WRITES, thoughts=api.THOUGHTS)
        if ask.stream:
            self._stream(api.events(ask, answer))
        else:
            self._json(api.whole(ask, answer))
        call.finished = True

    def _stream(self, events: Iterator[Event]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self._say_limits()
        self.end_headers()
        for event in events:
            time.sleep(event.delay)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event.data), event.data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _json(self, value: Any, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self._say_limits()
        self.end_headers()
        self.wfile.write(data)

    def _say_limits(self) -> None:
        for name, value in self.server.model.limits.items():
            self.send_header(name, value)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""
