"""What the URL of a hub says: one address, or several of one team's hubs, separated by commas."""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.ledger import LedgerError

SCHEMES = ("https", "http")
EXPECTED = "expected https://HOST"
_PORTS = {"https": 443, "http": 80}


class Hub(Struct, frozen=True):
    """One of them. `path` is where a reverse proxy has put it: empty, or /PATH."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        scheme = "https" if self.secure else "http"
        return f"{scheme}://{self.host}{'' if self.port == _PORTS[scheme] else f':{self.port}'}{self.path}"


def is_hub(url: str) -> bool:
    return url.partition("://")[0] in SCHEMES


def hubs_of(url: str) -> tuple[Hub, ...]:
    """The hubs at a URL, in the order in which they are asked. Raises LedgerError.

    Without TLS a token would be read on its way: http is for this machine only.
    """
    return tuple(_hub(part.strip()) for part in url.split(","))


def canonical(url: str) -> str:
    """The same for each spelling. Raises LedgerError."""
    return ",".join(hub.url for hub in hubs_of(url))


def _hub(text: str) -> Hub:
    scheme, separator, rest = text.partition("://")
    place, _, path = rest.rstrip("/").partition("/")
    host, port = _place(place)
    usual = _PORTS.get(scheme)
    number = int(port) if port.isdigit() and len(port) < 6 else usual if port == "" else None
    if not (separator and usual and number and number < 65536 and _is_host(host) and _is_path(path)):
        raise LedgerError(f"ledger URL of no hub, {EXPECTED}")
    if scheme == "http" and not _is_loopback(host):
        raise LedgerError(f"ledger URL without TLS, {EXPECTED}; http is for this machine only")
    return Hub(scheme == "https", host.lower(), number, f"/{path}" if path else "")


def _place(text: str) -> tuple[str, str]:
    """Host and port; an address of IPv6 stands in brackets."""
    end = text.find("]") + 1 if text.startswith("[") else text.find(":")
    if end <= 0:
        return text, "none" if text.startswith("[") else ""
    host, rest = text[:end], text[end:]
    return host, rest.removeprefix(":") or ("none" if rest else "")


def _is_host(host: str) -> bool:
    if host.startswith("["):
        return all(sign in "0123456789abcdefABCDEF:." for sign in host[1:-1]) and ":" in host
    return host.isascii() and host.replace("-", "").replace(".", "").isalnum() and host[0].isalnum()


def _is_path(path: str) -> bool:
    return path == "" or (path.isascii() and all(sign.isalnum() or sign in "-._~/" for sign in path))


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "[::1]") or (host.startswith("127.") and host.replace(".", "").isdigit())
