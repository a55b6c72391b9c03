"""One SCIM request: scim2-server's protocol over the hub's tables."""

from __future__ import annotations

import orjson
from scim2_models import (
    AuthenticationScheme,
    Bulk,
    ChangePassword,
    EnterpriseUser,
    ETag,
    Filter,
    Group,
    Patch,
    ResourceType,
    SCIMException,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    User,
)
from scim2_server.handler import ScimHandler
from scim2_server.requests import ScimRequest
from scim2_server.service import ScimService

from acp_proxy.hub.scim.routes import Answered
from acp_proxy.hub.scim.storage import MODELS, Storage
from acp_proxy.hub.settings import Provider
from acp_proxy.hub.store import Store
from acp_proxy.ledger.statements import Run

Asked = tuple[str, str, dict[str, str], list[tuple[str, str]], bytes]  # method, path, query, headers, body
_MOST = 1000  # resources of one answer

_SERVICE = ScimService(
    ScimProvider(
        [User, EnterpriseUser, Group],
        [ResourceType.from_resource(each) for each in MODELS.values()],
        config=ServiceProviderConfig(
            patch=Patch(supported=True),
            bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
            filter=Filter(supported=True, max_results=_MOST),
            change_password=ChangePassword(supported=False),
            sort=Sort(supported=True),
            etag=ETag(supported=True),
            authentication_schemes=[
                AuthenticationScheme(
                    type=AuthenticationScheme.Type.oauthbearertoken,
                    name="Bearer token",
                    description="a token with the scope scim",
                )
            ],
        ),
    )
)


def answered(store: Store, base: str, asked: Asked, rules: Provider | None, now: int) -> Answered:
    """Raises LedgerError."""
    method, path, query, headers, body = asked
    request = ScimRequest(method, base, path, query, headers, body)

    def work(run: Run) -> Answered:
        if method not in ("GET", "HEAD"):
            store.audit.lock(run)
        handler = ScimHandler(_SERVICE, Storage(run, store.organisation, store.people, rules, now))
        answer = handler.handle(request)
        return int(answer.status), b"" if answer.body is None else orjson.dumps(answer.body), answer.headers

    try:
        return store.people.write(work)
    except SCIMException as error:
        answer = _SERVICE.error_response(error)
        return int(answer.status), orjson.dumps(answer.body), answer.headers
