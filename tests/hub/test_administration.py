"""What an administrator does at the hub's database: tokens, keys, the log of changes."""

from __future__ import annotations

import json
import time

import orjson
import pytest

from acp_proxy.hub import administration
from acp_proxy.hub.auth.access_tokens import NotSignedInError
from acp_proxy.hub.auth.authenticator import Authenticator
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.system.errors import UsageError
from tests.hub.conftest import asking

DAY = 86400


async def test_a_token_is_shown_once_and_good_until_it_is_revoked(store: Store) -> None:
    now = int(time.time())
    asked = Asked("ci", "ci-web", "service", "web", (), ("meter",), now + DAY)
    secret, told = administration.make_token(store, asked, as_json=False).splitlines()
    assert told.startswith("ci, for ci-web until 20")
    who = await Authenticator(asking(store)).identity_of(f"Bearer {secret}", None, now)
    assert (who.user, who.role, who.scopes) == ("ci-web", "service", ("meter",))
    listed = administration.list_tokens(store, as_json=False)
    assert secret not in listed
    header, line = listed.splitlines()
    assert header.split() == ["id", "name", "user", "role", "team", "good", "for", "until"]
    assert line.split()[:6] == [who.token, "ci", "ci-web", "service", "web", "meter"]
    assert administration.revoke_token(store, who.token).startswith("revoked ci, of ci-web")
    with pytest.raises(NotSignedInError, match="revoked"):
        await Authenticator(asking(store)).identity_of(f"Bearer {secret}", None, now)
    assert administration.list_tokens(store, as_json=False).splitlines()[1].endswith("revoked")
    with pytest.raises(UsageError, match="no token"):
        administration.revoke_token(store, who.token)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_programs_read_what_was_made(store: Store) -> None:
    (made,) = json.loads(administration.make_token(store, Asked("laptop", "alice"), as_json=True))
    assert made["token"].startswith("acp_")
    (listed,) = json.loads(administration.list_tokens(store, as_json=True))
    assert listed == {name: value for name, value in made.items() if name != "token"}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked("", "alice"), "expected a name"),
        (Asked("a", "al\nice"), "expected a name"),
        (Asked("ci", "ci", "service"), "needs --for DURATION"),
    ],
)
def test_a_token_of_nobody_or_without_an_end_is_not_made(asked: Asked, said: str, store: Store) -> None:
    with pytest.raises(UsageError, match=said):
        administration.make_token(store, asked, as_json=False)
    assert administration.list_tokens(store, as_json=False) == "no token was made yet\n"


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_log_that_was_changed_is_told_by_status_and_line(store: Store) -> None:
    administration.make_token(store, Asked("a", "alice"), as_json=False)
    administration.rotate_keys(store, forget=False)
    status, said = administration.verified(store, None)
    assert (status, said.startswith("2 lines, none was changed; the last digest is ")) == (0, True)
    lines = list(map(orjson.loads, administration.exported(store)))
    assert [(line["actor"], line["action"]) for line in lines] == [("command", "token.made"), ("command", "key.made")]
    assert administration.verified(store, lines[0]["hash"])[0] == 0
    assert administration.verified(store, "0" * 63 + "1")[0] == 1
    store.audit._tables.write(lambda run: run("UPDATE hub_audit SET actor = 'bob' WHERE number = 1", ()))
    assert administration.verified(store, None) == (1, "line 1 was changed; 0 lines before it hold\n")
