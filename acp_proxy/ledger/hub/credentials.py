"""The token that a hub is asked with: of the environment, for CI, else of who signed in on this machine."""

from __future__ import annotations

import os

from acp_proxy.ledger import LedgerForbiddenError
from acp_proxy.ledger.hub.connection import Authorization

VARIABLE = "ACP_PROXY_HUB_TOKEN"


def authorization_for(url: str) -> Authorization:
    """For the hubs at `url`; it raises LedgerForbiddenError where there is no token."""

    def of_environment(renew: bool) -> str:
        token = os.environ.get(VARIABLE, "")
        if not token or renew:
            what = "refused" if renew else "missing"
            raise LedgerForbiddenError(f"ledger {url}: the token in {VARIABLE} is {what}")
        return f"Bearer {token}"

    return of_environment
