"""A channel's URL and secret, read from the configuration or their files. Only the host is ever shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from msgspec import Struct

from acp_proxy.config import ConfigError
from acp_proxy.config.channels import Channel, Format, Secret
from acp_proxy.config.checks import secret, webhook
from acp_proxy.core.digest import digest
from acp_proxy.ledger.notices import Subscription
from acp_proxy.system.errors import reason_of

_LARGEST = 4096  # bytes of a file with a URL or secret


class Destination(Struct, frozen=True):
    """A channel that can be sent to."""

    name: str
    format: Format
    host: str
    wanted: Subscription
    url: str
    secret: str | None

    def __repr__(self) -> str:
        return f"Destination({self.name!r}, {self.format!r}, {self.host!r})"


def destinations(channels: Iterable[Channel], organisation: str) -> list[Destination]:
    """Raises ConfigError with one line for a file that cannot be used."""
    return [destination(channel, organisation) for channel in channels]


def destination(channel: Channel, organisation: str) -> Destination:
    """Raises ConfigError."""
    url = _read(channel, "url", channel.url, webhook)
    signs = None if channel.secret is None else _read(channel, "secret", channel.secret, secret)
    # The same channel on several machines has one key, another of its name has another. A digest tells no URL.
    key = digest("\n".join((channel.layer, channel.name, channel.format, url)).encode(), 12)
    wanted = Subscription(organisation, key, channel.kinds, channel.budgets)
    return Destination(channel.name, channel.format, urlsplit(url).hostname or "", wanted, url, signs)


def _read(channel: Channel, key: str, value: Secret, check: Callable[[object], str]) -> str:
    if value.text is not None or value.file is None:
        return value.text or ""
    where = f'notify "{channel.name}": {key}_file {value.file}'
    try:
        with value.file.open("rb") as file:
            return check(file.read(_LARGEST).decode().strip())
    except OSError as error:
        raise ConfigError(f"{where}: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: expected UTF-8 text") from error
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
