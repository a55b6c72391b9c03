"""An OpenID provider, asked by Authlib: authorization code flow with PKCE (S256), state and nonce.

Its metadata and keys are remembered; keys that it changed are asked for anew, once for each token that needs them.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jws, jwt
from joserfc.errors import ClaimError, ExpiredTokenError, JoseError
from joserfc.jwk import KeySet

from acp_proxy.hub.auth.claims import RefusedError
from acp_proxy.hub.settings import Provider

_SECONDS = 8.0  # that all its answers for one sign-in may take together
_REMEMBERED = 3600  # seconds
_LEEWAY = 120  # seconds that its clock may differ from ours
_SIGNED_BY = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_LARGEST = 1 << 20  # bytes of an answer


class ProviderError(Exception):
    """The provider cannot be asked, or answers what nobody can use: for people, and to be tried again."""


class OpenIdProvider:
    """`finish` ends what `begin` began: `flow` is a secret of the browser that both are called for."""

    def __init__(self, settings: Provider) -> None:
        self.settings = settings
        self._metadata: dict[str, Any] | None = None
        self._keys: KeySet | None = None
        self._asked_at = 0

    async def begin(self, flow: str, redirect_uri: str, now: int) -> str:
        """The address to which the browser is sent. Raises ProviderError."""
        async with self._client(redirect_uri) as client, self._answering():
            metadata = await self._found(client, now)
            url, _ = client.create_authorization_url(
                metadata["authorization_endpoint"],
                state=state_of(flow),
                nonce=_part(flow, "nonce"),
                code_verifier=_part(flow, "verifier"),
            )
        return str(url)

    async def finish(self, flow: str, redirect_uri: str, answer: Mapping[str, str], now: int) -> dict[str, Any]:
        """The claims of who has signed in. Raises ProviderError and RefusedError."""
        if not hmac.compare_digest(answer.get("state", "").encode(), state_of(flow).encode()):
            raise RefusedError("this sign-in was begun in another browser, or long ago: begin anew")
        if "error" in answer:
            said = answer.get("error_description") or answer["error"]
            raise RefusedError(f"{self.settings.name} says: {said[:200]}")
        async with self._client(redirect_uri) as client, self._answering():
            metadata = await self._found(client, now)
            if answer.get("iss", metadata["issuer"]) != metadata["issuer"]:  # RFC 9207
                raise RefusedError("this is the answer of another provider")
            token = await client.fetch_token(
                metadata["token_endpoint"], code=answer.get("code", ""), code_verifier=_part(flow, "verifier")
            )
            claims = await self._verified(client, token, _part(flow, "nonce"), now)
            return await self._completed(client, claims)

    async def _verified(
        self, client: AsyncOAuth2Client, token: Mapping[str, Any], nonce: str, now: int
    ) -> dict[str, Any]:
        text = str(token.get("id_token") or "")
        try:
            key = jws.extract_compact(text.encode()).headers().get("kid")
        except (JoseError, ValueError) as error:
            raise ProviderError("its answer has no ID token") from error
        keys = self._keys
        if keys is None or (key and key not in [each.kid for each in keys.keys]):
            keys = self._keys = await self._fetched_keys(client)
        algorithms = [each for each in _SIGNED_BY if each in self._metadata_now.get(_ALGORITHMS, ["RS256"])]
        try:
            decoded = jwt.decode(text, keys, algorithms=algorithms)
            metadata, ours = self._metadata_now, self.settings.client_id
            options = {"iss": {"essential": True, "value": metadata["issuer"]}}
            options["aud"] = {"essential": True, "value": ours}
            params = {"nonce": nonce, "client_id": ours, "access_token": token.get("access_token")}
            CodeIDToken(decoded.claims, decoded.header, options, params).validate(now, _LEEWAY)
        except ExpiredTokenError as error:
            late = now - decoded.claims["exp"]
            raise ProviderError(f"its answer expired {late} s ago: its clock or the hub's is wrong") from error
        except ClaimError as error:
            if error.claim in ("iat", "nbf"):
                raise ProviderError("its answer is of the future: its clock or the hub's is wrong") from error
            raise ProviderError(f"the {error.claim} of its ID token is not what was expected") from error
        except (JoseError, ValueError, TypeError) as error:
            raise ProviderError("its ID token is not signed with one of its keys") from error
        return dict(decoded.claims)

    async def _completed(self, client: AsyncOAuth2Client, claims: dict[str, Any]) -> dict[str, Any]:
        """With what it tells only at its userinfo endpoint."""
        endpoint = self._metadata_now.get("userinfo_endpoint")
        groups = self.settings.groups.removeprefix("/").split("/")[0]
        wanted = {self.settings.user, "email", groups}
        if not endpoint or wanted <= claims.keys():
            return claims
        answer = await client.get(endpoint)
        more = _object(answer)
        if more.get("sub") != claims.get("sub"):
            raise ProviderError("it tells of somebody else than who has signed in")
        return more | claims

    async def _found(self, client: AsyncOAuth2Client, now: int) -> dict[str, Any]:
        if self._metadata is None or not 0 <= now - self._asked_at < _REMEMBERED:
            issuer = self.settings.issuer
            url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
            found = _object(await client.request("GET", url, withhold_token=True))
            if found.get("issuer") != issuer:
                raise ProviderError(f"it calls itself {str(found.get('issuer'))[:200]!r}, not {issuer!r}")
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                if not str(found.get(name, "")).startswith(("https://", "http://")):
                    raise ProviderError(f"its metadata has no {name}")
            self._metadata, self._asked_at = found, now
        metadata = self._metadata
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if self.settings.client_secret and "client_secret_basic" not in methods:
            client.token_endpoint_auth_method = "client_secret_post"  # noqa: S105  the name of a method
        return metadata

    async def _fetched_keys(self, client: AsyncOAuth2Client) -> KeySet:
        found = _object(await client.request("GET", self._metadata_now["jwks_uri"], withhold_token=True))
        keys = [key for key in found.get("keys", []) if isinstance(key, dict) and key.get("use", "sig") == "sig"]
        usable = [key for key in keys if key.get("kty") in ("RSA", "EC", "OKP")]
        try:
            return KeySet.import_key_set({"keys": usable})
        except (JoseError, ValueError, TypeError) as error:
            raise ProviderError("its keys cannot be read") from error

    @property
    def _metadata_now(self) -> dict[str, Any]:
        return self._metadata or {}

    def _client(self, redirect_uri: str) -> AsyncOAuth2Client:
        return AsyncOAuth2Client(
            self.settings.client_id,
            self.settings.client_secret or None,
            scope=" ".join(self.settings.scopes),
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
            timeout=_SECONDS,
        )

    def _answering(self) -> _Answering:
        return _Answering(self.settings.name)


class _Answering:
    """Around all that is asked of a provider: within its time, and what it answers wrong as one line."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._within = asyncio.timeout(_SECONDS)

    async def __aenter__(self) -> None:
        await self._within.__aenter__()

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        try:
            await self._within.__aexit__(kind, error, trace)
        except TimeoutError:
            raise ProviderError(f"{self._name} does not answer: try again later") from error
        match error:
            case ProviderError():
                raise ProviderError(f"{self._name}: {error}") from error
            case httpx2.TimeoutException():
                raise ProviderError(f"{self._name} does not answer: try again later") from error
            case httpx2.HTTPError() | httpx2.InvalidURL():
                raise ProviderError(f"{self._name} cannot be reached: try again later") from error
            case OAuthError():
                raise ProviderError(f"{self._name} refuses: {str(error)[:200]}") from error
            case ValueError():
                raise ProviderError(f"{self._name} answers what is no JSON object") from error


_ALGORITHMS = "id_token_signing_alg_values_supported"


def state_of(flow: str) -> str:
    return _part(flow, "state")


def _part(flow: str, name: str) -> str:
    """State, nonce and verifier come of one secret, which the browser keeps in a cookie that no script reads."""
    return hmac.digest(flow.encode(), name.encode(), hashlib.sha256).hex()


def _object(answer: httpx2.Response) -> dict[str, Any]:
    if answer.status_code != 200:
        raise ProviderError(f"answers {answer.status_code} at {answer.url.path}")
    if len(answer.content) > _LARGEST:
        raise ProviderError("answers more than anybody reads")
    found = answer.json()
    if not isinstance(found, dict):
        raise ProviderError("answers what is no JSON object")
    return found
