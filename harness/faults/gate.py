"""What PostgreSQL's protocol is handed through statement by statement, and can be broken at a chosen one.

Where connections are cut, and what a server answers then, is real: a statement that is to fail names something that
is not there, so that the server gives its transaction up, and only the SQLSTATE that it says is put in.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Literal, Protocol

How = Literal["cut before", "cut after", "failed", "committed and failed"]

_LENGTH = Struct("!I")
_SPECIAL = (80877103, 80877104)  # asks for TLS, for GSSAPI: answered by one byte
_SQLSTATE = re.compile(rb"\0C([0-9A-Z]{5})\0")
_NOWHERE = b"nowhere"  # a prepared statement
_LEVEL = b"READ COMMITTED"


class _EndError(Exception):
    """The connection is to end here."""


@dataclass(frozen=True, slots=True)
class Break:
    """What happens at a statement, counted from 1; where it is "committed and failed", at such a COMMIT."""

    number: int
    how: How
    sqlstate: str = ""  # that is said where it fails


class Gate:
    """On `port` of loopback, to `to`. `level` stands for READ COMMITTED where a transaction begins, if it is given."""

    def __init__(self, to: int, level: str = "") -> None:
        self.to = to
        self.texts = set[str]()  # SQL that came through
        self._level = level.upper().encode()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._lock = threading.Lock()
        self._open = set[socket.socket]()
        self._break: Break | None = None
        self._asked = self._answered = 0  # statements, since it was armed
        self._failed = False  # and nothing is answered until the end of the journey, as by a server

    def arm(self, what: Break | None) -> None:
        """Happens once."""
        with self._lock:
            self._break, self._asked, self._answered, self._failed = what, 0, 0, False

    @property
    def is_armed(self) -> bool:
        """Whether it has not happened yet."""
        return self._break is not None

    def serve(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._connected, args=(client,), name="gate", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for each in list(self._open):
            _end(each)

    def _connected(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open |= {client, server}
        answers = threading.Thread(target=self._hand_on, args=(server, client, self._answers), daemon=True)
        with contextlib.suppress(OSError, EOFError):
            self._greet(client, server)
            answers.start()
            self._hand_on(client, server, self._questions)
        for end in (client, server):
            _end(end)
        if answers.ident:
            answers.join()
        for end in (client, server):
            end.close()
        self._open -= {client, server}

    def _greet(self, client: socket.socket, server: socket.socket) -> None:
        """What comes before messages have a type."""
        while True:
            first = _read(client, 4)
            rest = _read(client, _LENGTH.unpack(first)[0] - 4)
            server.sendall(first + rest)
            if _LENGTH.unpack(rest[:4])[0] not in _SPECIAL:
                return
            client.sendall(_read(server, 1))

    def _hand_on(self, source: socket.socket, to: socket.socket, look: _Look) -> None:
        """All that came together together, as far as it is whole."""
        data = b""
        with contextlib.suppress(OSError):
            while more := source.recv(65536):
                data += more
                whole, data = _messages(data)
                sent = list[bytes]()
                try:
                    for each in whole:
                        sent.append(look(each))
                except _EndError:
                    to.sendall(b"".join(sent))
                    if look == self._questions:  # what came before is done, and not while somebody tries it again
                        to.shutdown(socket.SHUT_WR)
                        while to.recv(65536):
                            pass
                    break
                to.sendall(b"".join(sent))
        for end in (source, to):
            _end(end)

    def _questions(self, message: bytes) -> bytes:
        kind = message[:1]
        if kind == b"P":
            name, text, types = message[5:].split(b"\0", 2)
            self.texts.add(text.decode())
            if self._level and text.startswith(b"BEGIN"):
                text = text.replace(_LEVEL, self._level)
            return _message(kind, b"\0".join((name, text, types)))
        if kind != b"B":
            return message
        with self._lock:
            self._asked += 1
            what = self._break
            if what is None or what.number != self._asked:
                return message
            if what.how == "cut before":
                self._break = None
                raise _EndError
        if what.how == "failed":
            portal, _, rest = message[5:].split(b"\0", 2)
            return _message(kind, b"\0".join((portal, _NOWHERE, rest)))
        return message

    def _answers(self, message: bytes) -> bytes:
        kind = message[:1]
        if self._failed and kind != b"Z":
            return b""
        self._failed = False
        if kind not in b"CIE":
            return message
        with self._lock:
            what = self._break
            if kind == b"E":
                if what is not None and what.how == "failed" and _NOWHERE in message:
                    self._break = None
                    return _message(kind, _SQLSTATE.sub(b"\0C%s\0" % what.sqlstate.encode(), message[5:]))
                return message
            if what is not None and what.how == "committed and failed" and not message.startswith(b"COMMIT", 5):
                return message
            self._answered += 1
            if what is None or what.number != self._answered:
                return message
            if what.how == "cut after":
                self._break = None
                raise _EndError
            if what.how == "committed and failed":
                self._break, self._failed = None, True
                return _message(b"E", b"SERROR\0VERROR\0C%s\0Mmade up\0\0" % what.sqlstate.encode())
        return message


class _Look(Protocol):
    """What is handed on in place of a message; raises _EndError where nothing is any more."""

    def __call__(self, message: bytes, /) -> bytes: ...


@contextlib.contextmanager
def gated(port: int, level: str = "") -> Iterator[Gate]:
    gate = Gate(port, level)
    thread = threading.Thread(target=gate.serve, name="gate")
    thread.start()
    try:
        yield gate
    finally:
        gate.close()
        thread.join(10)


def _messages(data: bytes) -> tuple[list[bytes], bytes]:
    """Those that are whole, and what is left."""
    found, start = list[bytes](), 0
    while len(data) >= start + 5 and len(data) >= (end := start + 1 + _LENGTH.unpack_from(data, start + 1)[0]):
        found.append(data[start:end])
        start = end
    return found, data[start:]


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + _LENGTH.pack(len(body) + 4) + body


def _read(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := source.recv(size - len(data))):
            raise EOFError
        data += more
    return data


def _end(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
