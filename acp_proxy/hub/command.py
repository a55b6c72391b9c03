"""`acp-proxy hub` from its settings to the end of the process: checks, one socket, one server."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn, TextIO
from urllib.parse import urlsplit

import uvicorn
from msgspec.structs import replace

from acp_proxy.config.checks import port as checked_port
from acp_proxy.hub.connections import HubConnection, allow_many
from acp_proxy.hub.guard import Guard
from acp_proxy.hub.settings import Listen, Settings, load
from acp_proxy.hub.site import Site
from acp_proxy.ledger.places import private_directory, sqlite_path
from acp_proxy.log import Log
from acp_proxy.system.errors import UsageError, reason_of

if sys.platform == "win32":
    from asyncio import new_event_loop
else:
    from uvloop import new_event_loop

_QUEUED = 1024  # connections that the system keeps for us
_IDLE = 300  # seconds that a proxy's connection may rest: a new one would cost the next prompt two more journeys
_GRACE = 3  # seconds in which answers may still be written after SIGTERM


def main(path: Path | None, port: str | None, environ: Mapping[str, str], say: TextIO) -> int:
    """Serve until SIGTERM or SIGINT; 0. Raises UsageError, ConfigError and LedgerError for what keeps it from that."""
    settings = load(path, environ)
    if port is not None:
        try:
            chosen = int(str(checked_port(int(port)))) if port != "0" else 0
        except ValueError as error:
            raise UsageError(f"hub: --port: {error}") from error
        settings = replace(settings, listen=replace(settings.listen, port=chosen))
    _check(settings.listen)
    if settings.database.url.startswith("sqlite:"):
        directory = sqlite_path(settings.database.url).parent
        try:
            private_directory(directory)
        except OSError as error:
            raise UsageError(f"hub: {directory}: {reason_of(error)}") from error
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGTERM, _end)  # uvicorn raises the signal that ended it once more
    with _listening(settings.listen) as listener:
        site = Site(settings, environ, partial(Log("warning", None), "warning"))
        try:
            site.ledgers.open()
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(_serve(site, settings, listener, say))
        finally:
            site.close(within=2.0)
    return 0


async def _serve(site: Site, settings: Settings, listener: socket.socket, say: TextIO) -> None:
    first = await site.first_token()
    listen = settings.listen
    HubConnection.most = allow_many()
    server = uvicorn.Server(
        uvicorn.Config(
            Guard(site.application, _names(settings)),
            http=HubConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(listen.trusted),
            forwarded_allow_ips=list(listen.trusted),
            ssl_certfile=listen.certificate,
            ssl_keyfile=listen.key,
            backlog=_QUEUED,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=_GRACE,
        )
    )
    url = settings.url or _place(listener, secure=listen.certificate is not None)
    _tell(say, f"acp-proxy: hub at {url}\n")
    if first:
        _tell(say, _next_steps(url, first))
    async with site.sending():
        await server.serve([listener])


def _end(*_: object) -> NoReturn:
    raise SystemExit(0)


def _next_steps(url: str, token: str) -> str:
    return f"""
  An administrator's token, which is not shown again:

      {token}

  On a developer's machine:

      export ACP_PROXY_HUB_TOKEN={token}
      acp-proxy --ledger {url} doctor

"""


def _check(listen: Listen) -> None:
    """Raises UsageError with one line."""
    if listen.certificate is not None and listen.key is not None:
        for name, file in (("certificate", listen.certificate), ("key", listen.key)):
            try:
                Path(file).read_bytes()
            except OSError as error:
                raise UsageError(f"hub: listen.{name}: {file}: {reason_of(error)}") from error
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(listen.certificate, listen.key)
        except (ssl.SSLError, ValueError) as error:
            raise UsageError(
                "hub: listen.certificate and listen.key: expected a certificate and its key in PEM"
            ) from error


def _listening(listen: Listen) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"hub: no address of this machine: {listen.host!r}") from error
    is_local = ip_address(str(address[0]).partition("%")[0]).is_loopback
    if not (is_local or listen.certificate or listen.trusted):
        wanted = "listen.certificate and listen.key, or listen.trusted for a reverse proxy with TLS"
        raise UsageError(f"hub: {listen.host} can be reached from other machines: it needs {wanted}")
    try:
        listener = socket.create_server(address[:2], family=family, backlog=_QUEUED)
        # Of all connections that it accepts: asyncio sets it where a socket names its protocol, and this one does not.
        # Without it an answer's body waits for the client to acknowledge its head, 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise UsageError(f"hub: {listen.host}:{listen.port}: {reason_of(error).partition(' (')[0]}") from error


def _names(settings: Settings) -> list[str]:
    own = [urlsplit(settings.url).hostname or "", settings.listen.host, *settings.listen.allowed_hosts]
    return [name for name in own if name]


def _place(listener: socket.socket, *, secure: bool) -> str:
    host, port = listener.getsockname()[:2]
    return f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _tell(say: TextIO, text: str) -> None:
    with suppress(OSError):  # a log that is full is no reason not to serve
        os.write(say.fileno(), text.encode())
