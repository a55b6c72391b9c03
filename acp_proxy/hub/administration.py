"""`acp-proxy hub token`, `hub keys` and so on: what an administrator does at the hub's database, as text."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import orjson
from msgspec import structs

from acp_proxy.hub.settings import load
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.retention import Retention
from acp_proxy.hub.store.tokens import Asked, Token
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.places import is_postgres, private_directory, sqlite_path
from acp_proxy.system.errors import UsageError
from acp_proxy.text.figures import aligned, clean, counted

_ACTOR = "command"  # who has the database: no user of the hub


@contextmanager
def opened(config: Path | None, environ: Mapping[str, str]) -> Iterator[Store]:
    """The store of the hub with these settings. Raises ConfigError and LedgerError."""
    settings = load(config, environ)
    url = settings.database.url
    if not is_postgres(url):
        private_directory(sqlite_path(url).parent)
    with closing(open_ledger(url, journals=())) as ledger:
        yield Store(ledger.tables, settings.organisation)


def make_token(store: Store, asked: Asked, *, as_json: bool) -> str:
    """Raises UsageError and LedgerError."""
    for name in (asked.name, asked.user):
        if not name.strip() or not name.isprintable():
            raise UsageError(f"hub token create: expected a name, not {name!r}")
    if asked.role == "service" and asked.expires_at is None:
        raise UsageError("hub token create: a token with the role service needs --for DURATION, such as 90d")
    secret, token = store.tokens.make(asked, _ACTOR, _now())
    if as_json:
        return _json([{"token": secret, **_shown(token)}])
    until = f" until {_date(token.expires_at)}" if token.expires_at is not None else ""
    return f"{secret}\n{clean(token.name)}, for {clean(token.user)}{until}. It is not shown again.\n"


def list_tokens(store: Store, *, as_json: bool) -> str:
    now, tokens = _now(), store.tokens.all()
    if as_json:
        return _json([_shown(token) for token in tokens])
    if not tokens:
        return "no token was made yet\n"
    rows = [("id", "name", "user", "role", "team", "good for", "until")]
    for token in tokens:
        scopes, team = ", ".join(token.scopes) or "all", token.team or "-"
        names = [clean(each) for each in (token.id, token.name, token.user, token.role or "-", team, scopes)]
        rows.append((names[0], names[1], names[2], names[3], names[4], names[5], _end(token, now)))
    return aligned(rows, [False] * 7)


def revoke_token(store: Store, token: str) -> str:
    """By its id. Raises UsageError and LedgerError."""
    found = store.tokens.revoke(token, _ACTOR, _now())
    if found is None or found.kind != "token":
        raise UsageError(f"hub token revoke: no token {token!r} that holds; acp-proxy hub token list")
    return f"revoked {clean(found.name)}, of {clean(found.user)}: it ends within seconds, with all that it signed in\n"


def rotate_keys(store: Store, *, forget: bool) -> str:
    keys = store.keys.rotate(_now(), _ACTOR, forget=forget)
    ended = "all access tokens of earlier keys have ended" if forget else f"{counted(len(keys), 'key')} verify"
    return f"key {keys[0].id} signs from now on; {ended}\n"


def retention_of(config: Path | None, environ: Mapping[str, str]) -> Retention:
    """Raises ConfigError."""
    return load(config, environ).retention


def retain(store: Store, retention: Retention) -> str:
    if retention.keeps_all:
        raise UsageError("hub retention: hub.toml has no [retention]: all is kept")
    gone = store.retaining.run(retention, _now())
    names, titles = counted(gone.names, "name"), counted(gone.titles, "title")
    return f"removed {names}, {titles}, {counted(gone.requests, 'request')}, {counted(gone.lines, 'line')} of the log\n"


def exported(store: Store) -> Iterable[bytes]:
    return store.audit.exported()


def verified(store: Store, digest: str | None) -> tuple[int, str]:
    """The exit status, and a line."""
    found = store.audit.verify(digest)
    if found.fault is not None:
        return 1, f"{found.fault}; {counted(found.lines, 'line')} before it hold\n"
    return 0, f"{counted(found.lines, 'line')}, none was changed; the last digest is {found.last}\n"


def _shown(token: Token) -> dict[str, object]:
    found = structs.asdict(token)
    del found["kind"], found["parent"]
    return found


def _end(token: Token, now: int) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if not token.holds(now):
        return "expired"
    return "revoked by hand" if token.expires_at is None else _date(token.expires_at)


def _date(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _json(values: Sequence[object]) -> str:
    return orjson.dumps(values, option=orjson.OPT_INDENT_2).decode() + "\n"


def _now() -> int:
    return int(time.time())
