"""Digests of each machine's configuration files, without their content, so that `doctor` can name differences."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_proxy.core.windows import DAY
from acp_proxy.ledger.statements import Read, Run, insert

FileLayer = Literal["admin", "user"]
LAYERS: tuple[FileLayer, ...] = ("admin", "user")

KEPT = 30 * DAY  # after which a machine that was not seen again is forgotten

TABLES = (
    """
    CREATE TABLE settings (
        org_id TEXT NOT NULL,
        host TEXT NOT NULL,
        user_id TEXT NOT NULL,
        layer TEXT NOT NULL,
        digest TEXT NOT NULL,
        form INTEGER NOT NULL,
        seen_at INTEGER NOT NULL,
        PRIMARY KEY (org_id, host, user_id, layer)
    ) STRICT, WITHOUT ROWID
    """,
)
_KNOWN = "SELECT digest, form, seen_at FROM settings WHERE org_id = ? AND host = ? AND user_id = ? AND layer = ?"
_REPLACE = """
ON CONFLICT (org_id, host, user_id, layer) DO UPDATE SET
    digest = excluded.digest, form = excluded.form, seen_at = excluded.seen_at
"""
_SEEN = """
SELECT org_id, host, user_id, layer, digest, form, seen_at
FROM settings WHERE org_id = ? AND seen_at > ? ORDER BY host, user_id, layer
"""


class Settings(Struct, frozen=True):
    """The digest of one layer of one user's proxies on one machine, and when it was last seen (Unix ns).

    Digests of one `form` are equal when the same is meant; those of two forms cannot be compared.
    """

    organisation: str
    host: str
    user: str
    layer: FileLayer
    digest: str
    form: int
    seen_at: int


def is_news(read: Read, settings: Settings) -> bool:
    """Whether it changed, or was last seen a day ago: most starts of a proxy write nothing."""
    found = read(_KNOWN, (settings.organisation, settings.host, settings.user, settings.layer))
    if not found:
        return True
    digest, form, seen_at = found[0]
    return (digest, form) != (settings.digest, settings.form) or seen_at < settings.seen_at - DAY


def note(run: Run, settings: Settings) -> None:
    """Keep it, and forget machines that are gone."""
    run("DELETE FROM settings WHERE org_id = ? AND seen_at < ?", (settings.organisation, settings.seen_at - KEPT))
    values = (settings.organisation, settings.host, settings.user, settings.layer)
    insert(run, "settings", [(*values, settings.digest, settings.form, settings.seen_at)], _REPLACE)


def seen(read: Read, organisation: str, now: int) -> list[Settings]:
    """The settings that were seen in the last 30 days, by host, user and layer."""
    return [Settings(*found) for found in read(_SEEN, (organisation, now - KEPT))]
