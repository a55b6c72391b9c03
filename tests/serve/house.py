"""A home directory of its own, a real `acp-proxy serve` in it, and what a client without manners can ask."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from acp_proxy.ledger import Row, open_ledger
from tests.machine import COMMAND, run


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs."""

    address: str
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        port = urlsplit(self.address).port
        assert port
        return port

    def ask(self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET") -> Answer:
        """Headers are sent as they are given; a `Host` replaces the right one."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host="Host" in (headers or {}), skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def json(self, path: str) -> Any:
        answer = self.ask(path)
        assert answer.status == 200, answer.body
        return answer.json

    def send(self, raw: bytes) -> bytes:
        """Everything that comes back until the server hangs up."""
        with self.connected() as connection:
            connection.sendall(raw)
            received = b""
            with suppress(ConnectionResetError):
                while data := connection.recv(65536):
                    received += data
            return received

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def end(self, number: int = signal.SIGTERM) -> int:
        """The exit status."""
        self.process.send_signal(number)
        return self.process.wait(60)


@dataclass(frozen=True, slots=True)
class Home:
    path: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}/.local/state/acp-proxy/ledger.db"

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.path), "PATH": os.environ["PATH"], "TZ": "UTC", "USER": "alice"}

    def configure(self, text: str) -> None:
        file = self.path / ".config/acp-proxy/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def append(self, rows: Iterable[Row]) -> None:
        ledger = open_ledger(self.url, journals=())
        ledger.append(list(rows))
        ledger.close()

    def run(self, *arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return run({**self.environ, **(environ or {})}, *arguments)

    def json(self, *arguments: str) -> Any:
        """What a command says with `--json`."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def token(self, text: str = "let-me-in\n", mode: int = 0o600) -> Path:
        file = self.path / "token"
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)
        return file

    @contextmanager
    def serving(
        self, *options: str, environ: Mapping[str, str] | None = None, inherited: Sequence[int] = ()
    ) -> Iterator[Served]:
        """`inherited` are descriptors that the server gets from us."""
        command = [*COMMAND, "serve", "--port", "0", *options]
        environment = {**self.environ, **(environ or {})}
        with subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, text=True, pass_fds=inherited
        ) as process:
            assert process.stderr
            said = []
            try:
                while "serving on http://" not in (line := process.stderr.readline()):
                    said.append(line)
                    assert line, said
                yield Served(line.split()[-1], process)
            finally:
                process.kill()
                process.stderr.read()
