"""A notice as what each kind of webhook takes, within the limits that its service documents. Pure.

No name in a notice can mention anybody, make a link, or change how the rest looks: Slack gets plain text objects,
Teams runs of text that know no Markdown, Discord a backslash before all that could be markup.
"""

from __future__ import annotations

import base64
import hmac
from bisect import bisect_right
from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import accumulate
from typing import Any

import orjson

from acp_proxy.config.channels import Format
from acp_proxy.core.money import exact_text
from acp_proxy.core.notice import Notice
from acp_proxy.notify import texts
from acp_proxy.text.times import rfc3339, rfc3339_or_none

_SLACK = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_DISCORD = {sign: f"\\{sign}" for sign in r"\*_~`|<>[]()#-:@+="}
_NOTHING: Mapping[str, str] = {}

_SLACK_HEADER, _SLACK_SECTION = 150, 3000  # characters
_DISCORD_TITLE, _DISCORD_TEXT = 500, 1490  # of 2000 characters together
_TEAMS_TITLE, _TEAMS_TEXT = 500, 4000  # of 28 KB together, in up to 4 bytes each
_SUPPRESS_EMBEDS = 4
_DECIDE = "Decide"  # on a button that opens the link of a notice

# https://docs.slack.dev/reference/block-kit/blocks/section-block, …/header-block, …/messaging/formatting-message-text
# https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook
# https://adaptivecards.io/explorer/TextRun.html
# https://discord.com/developers/docs/resources/webhook#execute-webhook


def body(notice: Notice, format: Format) -> bytes:
    """UTF-8 JSON."""
    return orjson.dumps(_FORMATS[format](notice))


def signature(secret: str, id: str, timestamp: int, content: bytes) -> str:
    """As https://www.standardwebhooks.com says. The key is the secret's text, or what is base64 after `whsec_`."""
    text = secret.removeprefix("whsec_")
    key = secret.encode() if text == secret else base64.b64decode(text)
    signed = b".".join((id.encode(), str(timestamp).encode(), content))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, sha256)).decode()}"


def _json(notice: Notice) -> dict[str, Any]:
    """Amounts are decimal text, times RFC 3339 in UTC, and what is not known or does not apply is null."""
    left = None if notice.limit is None else notice.limit - (notice.spent or 0) - (notice.held or 0)
    return {
        "id": notice.id,
        "kind": notice.kind,
        "detail": notice.detail,
        "at": rfc3339(notice.at),
        "title": texts.title(notice),
        "text": texts.text(notice),
        "organisation": notice.organisation,
        "budget": notice.budget,
        "layer": notice.layer,
        "per": notice.per,
        "value": notice.value,
        "threshold": notice.percent,
        "unit": notice.unit,
        "limit": _decimal(notice, notice.limit),
        "spent": _decimal(notice, notice.spent),
        "held": _decimal(notice, notice.held),
        "left": _decimal(notice, left),
        "mode": notice.mode,
        **({"count_plans": True} if notice.count_plans else {}),
        "window": notice.window,
        "timezone": notice.zone,
        "resets_at": rfc3339_or_none(notice.resets_at),
        "user": notice.user,
        "team": notice.team,
        "project": notice.project,
        "agent": notice.agent,
        "model": notice.model,
        "host": notice.host,
        "request": notice.request,
        "amount": _decimal(notice, notice.amount),
        "reason": notice.why,
        "link": notice.link,
    }


def _slack(notice: Notice) -> dict[str, Any]:
    title, text = texts.title(notice), texts.text(notice)
    blocks = [("header", title, _SLACK_HEADER), ("section", text, _SLACK_SECTION)]
    button = {"type": "button", "text": {"type": "plain_text", "text": _DECIDE, "emoji": False}, "url": notice.link}
    return {
        "text": _fitted(f"{title}. {text}", _SLACK_SECTION, _SLACK),  # in notifications, and where blocks are not shown
        "blocks": [
            {"type": block, "text": {"type": "plain_text", "text": _fitted(says, most, _SLACK), "emoji": False}}
            for block, says, most in blocks
        ]
        + ([{"type": "actions", "elements": [button]}] if notice.link else []),
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _teams(notice: Notice) -> dict[str, Any]:
    title = {"type": "TextRun", "text": _fitted(texts.title(notice), _TEAMS_TITLE), "weight": "Bolder"}
    text = {"type": "TextRun", "text": _fitted(texts.text(notice), _TEAMS_TEXT)}
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "RichTextBlock", "inlines": [run]} for run in (title, text)],
    }
    if notice.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": _DECIDE, "url": notice.link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _discord(notice: Notice) -> dict[str, Any]:
    title = _fitted(texts.title(notice), _DISCORD_TITLE, _DISCORD)
    link = f"\n<{notice.link}>" if notice.link else ""
    text = _fitted(texts.text(notice), _DISCORD_TEXT - len(link), _DISCORD)
    return {"content": f"**{title}**\n{text}{link}", "allowed_mentions": {"parse": []}, "flags": _SUPPRESS_EMBEDS}


def _fitted(text: str, most: int, escapes: Mapping[str, str] = _NOTHING) -> str:
    """Escaped, with an ellipsis where more than `most` UTF-16 units would be needed; no escape is cut in two."""
    pieces = [escapes.get(sign, sign) for sign in text]
    ends = list(accumulate(len(piece.encode("utf-16-le")) // 2 for piece in pieces))
    if not ends or ends[-1] <= most:
        return "".join(pieces)
    return "".join(pieces[: bisect_right(ends, most - 1)]).rstrip() + "…"


def _decimal(notice: Notice, amount: int | None) -> str | None:
    return None if amount is None else exact_text(amount, notice.unit or "")


_FORMATS: Mapping[Format, Callable[[Notice], dict[str, Any]]] = {
    "json": _json,
    "slack": _slack,
    "teams": _teams,
    "discord": _discord,
}
