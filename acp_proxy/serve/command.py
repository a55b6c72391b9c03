"""`acp-proxy serve` from what was configured to the end of the process: checks, one socket, one server."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from types import FrameType
from typing import NoReturn, TextIO

import uvicorn

from acp_proxy.config import Config
from acp_proxy.ledger import LedgerUnavailableError
from acp_proxy.ledger.places import is_shared
from acp_proxy.serve.connections import AHEAD, LARGEST_HEAD, MOST, BoundedProtocol, Crowd
from acp_proxy.serve.guard import Guard, Policy
from acp_proxy.serve.site import Site
from acp_proxy.serve.systemd import telling
from acp_proxy.serve.token_file import TokenFile
from acp_proxy.system.errors import UsageError, reason_of

_GRACE = 2  # seconds in which answers may still be written after SIGTERM
_LAST = 4.5  # seconds after a signal until it ends as it is: who looks up a name cannot be stopped, and is waited for
_QUEUED = 128  # connections that the system keeps for us


def main(config: Config, environ: Mapping[str, str], say: TextIO | None) -> int:
    """Serve until SIGTERM or SIGINT; 0. Raises UsageError and LedgerError for what keeps it from starting.

    `say` is where it says what it does, None where it is not read: a daemon's stderr may be closed.
    """
    chosen = config.serve
    token = None
    if chosen.token_file:
        token = TokenFile(chosen.token_file, lambda line: _tell(say, f"acp-proxy: serve: {line}\n")).token
    with _listening(chosen.host, chosen.port, has_token=token is not None) as listener:
        site = Site(config, environ)
        try:
            try:
                site.open()
            except LedgerUnavailableError as error:
                if not is_shared(config.ledger.url):
                    raise
                _tell(say, f"acp-proxy: serve: {error}; it is asked again\n")
            _serve(site, listener, Policy.of(_names(config, listener), token), environ, say)
        except (KeyboardInterrupt, SystemExit) as signalled:
            _end_in_time(130 if isinstance(signalled, KeyboardInterrupt) else 0)
            raise
        finally:
            site.close(within=1.0)
    return 0


def _listening(host: str, port: int, *, has_token: bool) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"serve: no address of this machine: {host!r}") from error
    if not ip_address(str(address[0]).partition("%")[0]).is_loopback and not has_token:
        raise UsageError(f"serve: {host} can be reached from other machines: --token-file FILE is needed")
    try:
        listener = socket.create_server(
            address[:2],
            family=family,
            backlog=_QUEUED,
            dualstack_ipv6=address[0] == "::" and socket.has_dualstack_ipv6(),
        )
        # Of all connections that it accepts. asyncio sets the second where a socket names its protocol, and this one
        # does not: without it an answer's body may wait until the client has acknowledged its head.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, AHEAD)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        reason = f"{reason_of(error).partition(' (')[0]}; --host and --port choose another"
        raise UsageError(f"serve: {_place(host, port)}: {reason}") from error


def _names(config: Config, listener: socket.socket) -> list[str]:
    """By which the server is known: on the network also by the machine's name."""
    names = [config.serve.host, *config.serve.allowed_hosts]
    if not ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback:
        names += [socket.gethostname(), socket.getfqdn()]
    return names


def _serve(site: Site, listener: socket.socket, policy: Policy, environ: Mapping[str, str], say: TextIO | None) -> None:
    host, port = listener.getsockname()[:2]
    signal.signal(signal.SIGTERM, _end)
    server = _Server(
        uvicorn.Config(
            Guard(Crowd(site.application), policy),
            http=BoundedProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST,
            h11_max_incomplete_event_size=LARGEST_HEAD,
            timeout_graceful_shutdown=_GRACE,
        ),
        environ,
    )
    _tell(say, f"acp-proxy: serving on http://{_place(host, port)}/\n")
    server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """That tells systemd how it is, and ends in time."""

    def __init__(self, config: uvicorn.Config, environ: Mapping[str, str]) -> None:
        super().__init__(config)
        self._environ = environ
        self._status = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._status = 0 if sig == signal.SIGTERM else 128 + sig

    async def main_loop(self) -> None:
        async with telling(self._environ):
            await super().main_loop()
        _end_in_time(self._status)


def _end(*_: object) -> NoReturn:
    """Before uvicorn handles signals, and after: it raises the one that ended it once more."""
    raise SystemExit(0)


def _end_in_time(status: int) -> None:
    """Whatever thread is still waited for."""
    last = threading.Timer(_LAST, os._exit, [status])
    last.daemon = True
    last.start()


def _tell(say: TextIO | None, line: str) -> None:
    if say is not None:
        with suppress(OSError):  # a log that is full is no reason not to serve
            os.write(say.fileno(), line.encode())  # what stays in a buffer would be an error at the end


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
