"""An OpenID provider of our own on a port of loopback, by Authlib's server side; what is wrong with it can be chosen.

It knows one client and signs in whoever `account` says, without a question.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc6749.models import AuthorizationCodeMixin
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core.grants import OpenIDCode
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey

from harness.ports import free_port

os.environ.setdefault("AUTHLIB_INSECURE_TRANSPORT", "1")  # of Authlib's server side: loopback needs no TLS

CLIENT, SECRET = "acp-proxy", "the client's secret"


@dataclass
class Provider:
    """`account` are the claims of who signs in; `changes` replace claims of the ID token, None removes one."""

    port: int = field(default_factory=free_port)
    account: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    ahead: int = 0  # seconds that its clock is ahead
    denies: bool = False
    only_userinfo: bool = False  # tells of the account there alone
    unsigned: bool = False
    signed_by_secret: bool = False  # the ID token is signed with what it shares with its client
    stalls: threading.Event | None = None  # answers only when it is set
    broken: bool = False
    key: RSAKey = field(
        default_factory=lambda: RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)
    )
    codes: dict[str, Code] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    challenges: list[str] = field(default_factory=list)  # methods of PKCE that were asked for

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def rotate(self) -> None:
        self.key = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)

    @contextmanager
    def running(self) -> Iterator[Provider]:
        server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def id_token(self, nonce: str | None) -> str:
        now = int(time.time()) + self.ahead
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce}
        claims |= {"sub": self.account.get("sub", "")} if self.only_userinfo else self.account
        claims = {name: value for name, value in (claims | self.changes).items() if value is not None}
        if self.signed_by_secret:
            return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET * 2))
        token = jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)
        return token if not self.unsigned else f"{token.rpartition('.')[0]}."


@dataclass
class Code(AuthorizationCodeMixin):
    redirect_uri: str
    scope: str
    nonce: str | None
    code_challenge: str | None
    code_challenge_method: str | None
    auth_time: int = 0

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> int:
        return self.auth_time

    def get_acr(self) -> None:
        return None

    def get_amr(self) -> None:
        return None


class _Client(ClientMixin):
    client_id = CLIENT

    def get_client_id(self) -> str:
        return CLIENT

    def get_default_redirect_uri(self) -> str:
        return ""

    def get_allowed_scope(self, scope: Any) -> str:
        return str(scope)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return urlsplit(redirect_uri).path == "/signin/callback"

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_basic"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


class _Request(OAuth2Request):
    """As Authlib wants it, of one that came by HTTP."""

    def __init__(self, method: str, uri: str, headers: Any, form: dict[str, str]) -> None:
        super().__init__(method, uri, headers=headers)
        self._form = form
        self._sent = {name: values[0] for name, values in parse_qs(urlsplit(uri).query).items()} | form
        self.payload = BasicOAuth2Payload(self._sent)

    @property
    def args(self) -> dict[str, str | None]:
        return dict(self._sent)

    @property
    def form(self) -> dict[str, str]:
        return self._form


class _Server(AuthorizationServer):
    def __init__(self, provider: Provider) -> None:
        super().__init__()
        self._provider = provider
        self.register_token_generator("default", cast(Any, self._bearer))
        self.register_grant(_grant(provider), [CodeChallenge(required=True), _open_id(provider)])

    def query_client(self, client_id: str) -> Any:
        return _Client() if client_id == CLIENT else None

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        self._provider.tokens.add(token["access_token"])

    def create_oauth2_request(self, request: _Request) -> _Request:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any, Any]:
        return status, body, headers

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        pass

    def _bearer(self, **_: Any) -> dict[str, Any]:
        return {"token_type": "Bearer", "access_token": os.urandom(16).hex(), "expires_in": 300}


def _grant(provider: Provider) -> type[AuthorizationCodeGrant]:
    class Grant(AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic"]  # noqa: RUF012  as there

        def save_authorization_code(self, code: str, request: Any) -> None:
            data = request.payload.data
            provider.challenges.append(data.get("code_challenge_method"))
            challenge = (data.get("code_challenge"), data.get("code_challenge_method"))
            provider.codes[code] = Code(data["redirect_uri"], data["scope"], data.get("nonce"), *challenge)

        def query_authorization_code(self, code: str, client: Any) -> Code | None:
            return provider.codes.get(code)

        def delete_authorization_code(self, authorization_code: Code) -> None:
            provider.codes = {code: each for code, each in provider.codes.items() if each is not authorization_code}

        def authenticate_user(self, authorization_code: Code) -> dict[str, Any]:
            return provider.account or {"sub": ""}

    return Grant


def _open_id(provider: Provider) -> OpenIDCode:
    class Tokens(OpenIDCode):
        def exists_nonce(self, nonce: str, request: Any) -> bool:
            return False

        def process_token(self, grant: Any, response: Any) -> Any:
            _, token, _ = response
            token["id_token"] = provider.id_token(grant.request.authorization_code.get_nonce())
            return token

    return Tokens(require_nonce=True)


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    server = _Server(provider)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if provider.stalls is not None:
                provider.stalls.wait(60)
            path = urlsplit(self.path).path
            match path:
                case _ if provider.broken:
                    self._say(200, "<html>maintenance</html>", [])
                case "/.well-known/openid-configuration":
                    self._say(200, _metadata(provider.issuer), [])
                case "/keys":
                    self._say(200, KeySet([provider.key]).as_dict(private=False), [])
                case "/authorize":
                    self._authorize()
                case "/userinfo" if self.headers.get("Authorization", "").partition(" ")[2] in provider.tokens:
                    self._say(200, provider.account, [])
                case _:
                    self._say(404, {}, [])

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            uri = provider.issuer + self.path
            self._say(*cast(Any, server).create_token_response(_Request("POST", uri, self.headers, form)))

        def _authorize(self) -> None:
            request = _Request("GET", provider.issuer + self.path, self.headers, {})
            grant = cast(Any, server).get_consent_grant(request, end_user={"sub": ""})
            user = None if provider.denies else {"sub": "x"}
            self._say(*cast(Any, server).create_authorization_response(request, grant_user=user, grant=grant))

        def _say(self, status: int, body: Any, headers: Any) -> None:
            text = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            said = {"Content-Type": "application/json", **dict(headers), "Content-Length": str(len(text))}
            for name, value in said.items():
                self.send_header(name, value)
            with suppress(ConnectionError):  # who asked has given up
                self.end_headers()
                self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _metadata(issuer: str) -> dict[str, Any]:
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "userinfo_endpoint": f"{issuer}/userinfo",
        "jwks_uri": f"{issuer}/keys",
        "response_types_supported": ["code"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic"],
    }
