"""Who asks, by what is shown: and a clear answer to whatever is not, or not any more, a token of this hub."""

from __future__ import annotations

import base64
from contextlib import closing

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import OctKey

from acp_proxy.hub.auth.access_tokens import LIFETIME, AccessTokens, NotSignedInError
from acp_proxy.hub.auth.authenticator import FRESH, Authenticator, csrf_of, is_own_request
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.families import Granted
from acp_proxy.hub.store.keys import Key
from acp_proxy.hub.store.people import Holder, Person
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import open_ledger
from tests.hub.conftest import NOW, asking

ALICE = Person("alice@example.com", "lead", "core", ("core", "web"))


def _family(store: Store, now: int = NOW) -> Granted:
    """Of a machine of Alice's."""
    store.people.arrive(ALICE, ALICE.user, now)
    device, code = store.devices.begin(("0123abcd", "laptop"), "192.0.2.1", now)
    store.devices.decide(code, ALICE.user, None, now, allow=True)
    found = store.devices.ask(device, now)
    assert isinstance(found, Granted)
    return found


async def _access(store: Store, now: int = NOW) -> tuple[Authenticator, str]:
    authenticator, granted = Authenticator(asking(store)), _family(store, now)
    return authenticator, await authenticator.access_token(granted, now)


async def _refusal(authenticator: Authenticator, token: str, now: int = NOW) -> str:
    with pytest.raises(NotSignedInError) as refused:
        await authenticator.identity_of(f"Bearer {token}", None, now)
    return str(refused.value)


def _parts(token: str) -> tuple[dict[str, object], dict[str, object]]:
    header, claims, _ = token.split(".")
    return orjson.loads(base64.urlsafe_b64decode(f"{header}==")), orjson.loads(base64.urlsafe_b64decode(f"{claims}=="))


async def test_an_access_token_says_all_of_who_asks(store: Store) -> None:
    authenticator, token = await _access(store)
    identity = await authenticator.identity_of(f"Bearer {token}", None, NOW)
    family = store.families.all()[0]
    assert identity == Identity(
        "alice@example.com", "acme", "core", "lead", ("core", "web"), family.id, "0123abcd", NOW + LIFETIME
    )


async def test_an_access_token_holds_for_an_hour(store: Store) -> None:
    authenticator, token = await _access(store)
    assert await authenticator.identity_of(f"Bearer {token}", None, NOW + LIFETIME - 1)
    assert await _refusal(authenticator, token, NOW + LIFETIME + 60) == "this token has expired"


async def test_a_token_of_a_hub_whose_clock_is_an_hour_ahead_is_refused_by_name(store: Store) -> None:
    authenticator, token = await _access(store, NOW + 3600)
    assert await _refusal(authenticator, token) == "this token is of the future: a hub's clock is wrong"


async def test_a_token_by_whichever_key_of_the_hub_is_good(store: Store) -> None:
    authenticator, token = await _access(store)
    store.keys.rotate(NOW, "admin")
    other = Authenticator(asking(store))  # another hub
    assert await other.identity_of(f"Bearer {token}", None, NOW + 10)
    granted = _family(store)
    newer = await other.access_token(granted, NOW + 10)
    assert _parts(newer)[0]["kid"] != _parts(token)[0]["kid"]
    assert await authenticator.identity_of(f"Bearer {newer}", None, NOW + 1)  # has not seen the new key yet
    store.keys.rotate(NOW + 20, "admin", forget=True)
    for each in (token, newer):
        assert "does not have" in await _refusal(authenticator, each, NOW + 20)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_what_is_forged_is_refused(store: Store) -> None:
    authenticator, token = await _access(store)
    header, claims = _parts(token)
    key, (own, *_) = OctKey.import_key("guessed" * 10), store.keys.current(NOW)

    def signed(by: OctKey, **other: object) -> str:
        return jwt.encode({"alg": "HS256", "kid": own.id}, claims | other, by)

    def unsigned(algorithm: str) -> str:
        parts = [header | {"alg": algorithm}, claims]
        return ".".join([base64.urlsafe_b64encode(orjson.dumps(part)).decode().rstrip("=") for part in parts] + [""])

    assert await _refusal(authenticator, signed(key)) == "this token is not signed by this hub"
    assert "does not have" in await _refusal(authenticator, jwt.encode({"alg": "HS256", "kid": "x"}, claims, key))
    assert "does not have" in await _refusal(authenticator, jwt.encode({"alg": "HS256"}, claims, key))
    for algorithm in ("none", "None", "HS384", "RS256"):
        assert await _refusal(authenticator, unsigned(algorithm)) == "this is no token of this hub"
    ours = OctKey.import_key(own.secret)
    assert await _refusal(authenticator, signed(ours, aud="other/acme")) == "this token is for another hub"
    assert await _refusal(authenticator, signed(ours, iss="other")) == "this token is not made by a hub"
    assert await _refusal(authenticator, signed(ours, role="root")) == "this is no token of this hub"
    for missing in ("sub", "exp", "aud", "iss", "iat"):
        fewer = {name: value for name, value in claims.items() if name != missing}
        assert await _refusal(authenticator, jwt.encode({"alg": "HS256", "kid": own.id}, fewer, ours))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_token_of_another_hub_is_refused_also_with_the_same_key(store: Store) -> None:
    authenticator, _ = await _access(store)
    granted = _family(store)
    for installation, organisation in (("other", "acme"), (store.installation, "other")):
        foreign = AccessTokens(store.keys.current(NOW), installation, organisation)
        token = foreign.sign(granted.holder, granted.family, NOW)
        assert await _refusal(authenticator, token) == "this token is for another hub"


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_token_that_is_cut_anywhere_is_refused(store: Store) -> None:
    authenticator, token = await _access(store)
    for length in range(len(token)):
        assert await _refusal(authenticator, token[:length])


KEY = Key("k", "a" * 64, NOW)


@given(st.text() | st.from_regex(r"[\w-]*\.[\w-]*\.[\w-]*", fullmatch=True))
def test_no_text_is_a_token_by_chance(text: str) -> None:
    with pytest.raises(NotSignedInError):
        AccessTokens([KEY], "i", "acme").identity(text, NOW)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda each: st.lists(each, max_size=3)))
def test_no_claim_of_any_type_is_more_than_a_refusal(value: object) -> None:
    tokens = AccessTokens([KEY], "i", "acme")
    claims = {"iss": "acp-proxy", "aud": "i/acme", "sub": "a", "iat": NOW, "exp": NOW + 1, "sid": "s"}
    claims |= {"machine": None, "team": None, "role": "developer", "leads": [], "scopes": []}
    assert tokens.identity(_encoded(claims), NOW).user == "a"
    for name in claims:
        try:
            assert isinstance(tokens.identity(_encoded(claims | {name: value}), NOW), Identity)
        except NotSignedInError:
            continue


def _encoded(claims: dict[str, object]) -> str:
    return jwt.encode({"alg": "HS256", "kid": "k"}, claims, OctKey.import_key(KEY.secret))


async def test_a_machine_that_signed_out_is_refused_within_seconds_and_on_this_hub_at_once(store: Store) -> None:
    authenticator, token = await _access(store)
    other = Authenticator(asking(store))
    for hub in (authenticator, other):
        await hub.identity_of(f"Bearer {token}", None, NOW)
    store.families.revoke(store.families.all()[0].id, ALICE.user, NOW)
    authenticator.forget()
    assert await _refusal(authenticator, token) == "this token has been revoked"
    assert await other.identity_of(f"Bearer {token}", None, NOW + FRESH - 1)
    assert await _refusal(other, token, NOW + FRESH) == "this token has been revoked"


async def test_a_token_that_somebody_made_is_known_by_bearer_and_as_a_password(store: Store) -> None:
    asked = Asked("ci", "ci-web", "service", "web", (), ("meter",), NOW + 100)
    made, token = store.tokens.make(asked, "admin", NOW)
    expected = Identity("ci-web", "acme", "web", "service", (), token.id, None, NOW + 100, ("meter",))
    basic = base64.b64encode(f"prometheus:{made}".encode()).decode()
    for shown in (f"Bearer {made}", f"Basic {basic}"):
        assert await Authenticator(asking(store)).identity_of(shown, None, NOW) == expected
    assert expected.may("meter")
    assert not expected.may("scim")
    authenticator = Authenticator(asking(store))
    assert await _refusal(authenticator, made, NOW + 100) == "this token has expired"
    assert await _refusal(authenticator, made[:-1]) == "this is no token of this hub"
    assert await authenticator.identity_of(f"Bearer {made}", None, NOW)
    store.tokens.revoke(token.id, "admin", NOW)
    assert await _refusal(authenticator, made, NOW + FRESH) == "this token has been revoked"


async def test_a_browsers_cookie_has_the_rights_of_its_person_as_they_are_now(store: Store) -> None:
    store.people.arrive(ALICE, ALICE.user, NOW)
    cookie, _ = store.tokens.begin_session(ALICE.user, None, NOW, NOW + 100)
    authenticator = Authenticator(asking(store))
    assert (await authenticator.identity_of(None, cookie, NOW)).teams_led == ("core", "web")
    store.people.arrive(Person(ALICE.user, "developer", "web"), ALICE.user, NOW)
    assert (await authenticator.identity_of(None, cookie, NOW + FRESH)).role == "developer"
    store.people.keep(Person(ALICE.user, "developer", "web", active=False), "scim", NOW)
    with pytest.raises(NotSignedInError, match="revoked"):
        await authenticator.identity_of(None, cookie, NOW + 2 * FRESH)


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer  ", "Basic", "Basic !", "Digest x", "acp_x", "Basic w7/D"])
async def test_what_shows_no_token_is_told_so(shown: str, tmp_path: object) -> None:
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as ledger:
        authenticator = Authenticator(asking(Store(ledger.tables, "acme")))
        with pytest.raises(NotSignedInError):
            await authenticator.identity_of(shown, None, NOW)
        with pytest.raises(NotSignedInError, match="a token is needed"):
            await authenticator.identity_of(None, None, NOW)


def test_only_a_page_of_ours_knows_what_to_send_with_a_change() -> None:
    assert is_own_request("acps_a", csrf_of("acps_a"))
    for said in (None, "", "x", csrf_of("acps_b"), "é"):
        assert not is_own_request("acps_a", said)
    assert Holder("a", "developer", None, ()).scopes == ()
