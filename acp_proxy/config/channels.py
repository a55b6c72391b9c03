"""The `[[notify]]` of one configuration file as values: channels for notifications. Sends nothing.

A webhook's URL is a secret, because anyone who knows it can post there: it is shown nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from acp_proxy.config.arrays import Place, checked, tables
from acp_proxy.config.files import TomlFile, expanded
from acp_proxy.core.notice import KINDS, NoticeKind

Format = Literal["json", "slack", "teams", "discord"]


class Secret(Struct, frozen=True):
    """Text of the configuration, or a file that holds it and is read when it is needed."""

    text: str | None = None
    file: Path | None = None

    def __repr__(self) -> str:
        return f"Secret(file={self.file!r})"


class Channel(Struct, frozen=True):
    """`kinds` and `budgets` say what is sent; no `budgets` are all of them."""

    name: str
    layer: Literal["admin", "user"]
    url: Secret
    format: Format = "json"
    kinds: tuple[NoticeKind, ...] = KINDS
    budgets: tuple[str, ...] = ()  # names, or patterns with *
    secret: Secret | None = None  # signs what is sent as JSON


def channels_of(file: TomlFile, layer: Literal["admin", "user"], environ: Mapping[str, str]) -> tuple[Channel, ...]:
    """Every `[[notify]]` of the file, in its order. Raises ConfigError."""
    named: dict[str, Channel] = {}
    for index, table in enumerate(tables(file, "notify")):
        place = Place(file, "notify", index)
        channel = _channel(checked(table, place, {}), layer, place, environ)
        if channel.name in named:
            given = "" if "name" in table else "; give each a name"
            raise place.wrong("name", f'"{channel.name}" is the name of another channel of this file{given}')
        named[channel.name] = channel
    return tuple(named.values())


def _channel(
    values: dict[str, Any], layer: Literal["admin", "user"], place: Place, environ: Mapping[str, str]
) -> Channel:
    url = _secret("url", values, place, environ)
    if url is None:
        raise place.wrong("url", "expected the URL of a webhook, or url_file")
    secret = _secret("secret", values, place, environ)
    chosen: Format = values.get("format", "json")
    if secret is not None and chosen != "json":
        raise place.wrong("secret", f'only format = "json" is signed; {chosen} takes no signature')
    return Channel(
        values.get("name", chosen),
        layer,
        url,
        chosen,
        values.get("on", KINDS),
        values.get("budgets", ()),
        secret,
    )


def _secret(key: str, values: dict[str, Any], place: Place, environ: Mapping[str, str]) -> Secret | None:
    in_file = values.get(f"{key}_file")
    if in_file is None:
        return Secret(values[key]) if key in values else None
    if key in values:
        raise place.wrong(f"{key}_file", f"expected {key} or {key}_file, not both")
    return Secret(file=expanded(in_file, environ))
