"""A real Alertmanager on loopback, and a webhook that keeps what it is sent."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from harness.daemons import SECONDS, started
from harness.ports import free_port


@dataclass(frozen=True, slots=True)
class Webhook:
    url: str
    _received: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)

    def next(self, within: float = SECONDS) -> Any:
        """The JSON of the next request. Raises queue.Empty when none comes in time."""
        return self._received.get(timeout=within)


@contextmanager
def alertmanager(directory: Path, webhook: Webhook, receiver: dict[str, Any] | None = None) -> Iterator[int]:
    """Sends every alert to `webhook`, or to a receiver, as soon as it has it; yields its port."""
    port = free_port()
    config = directory / "alertmanager.json"  # JSON is YAML
    at_once = {"group_by": ["..."], "group_wait": "0s", "group_interval": "1s", "repeat_interval": "1h"}
    receiver = receiver or {"name": "webhook", "webhook_configs": [{"url": webhook.url}]}
    config.write_text(json.dumps({"route": {"receiver": receiver["name"], **at_once}, "receivers": [receiver]}))
    command = [
        "prometheus-alertmanager",
        f"--config.file={config}",
        f"--storage.path={directory / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
    with started(command, f"http://127.0.0.1:{port}/-/ready", directory / "alertmanager.log"):
        yield port


@contextmanager
def webhook() -> Iterator[Webhook]:
    received: queue.SimpleQueue[Any] = queue.SimpleQueue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield Webhook(f"http://127.0.0.1:{server.server_address[1]}/", received)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
