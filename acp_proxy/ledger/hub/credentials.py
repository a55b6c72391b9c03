"""The token that a hub is asked with: of the environment, for CI, else of who signed in on this machine."""

from __future__ import annotations

from acp_proxy.ledger import LedgerForbiddenError, LedgerUnavailableError
from acp_proxy.ledger.hub.connection import Authorization
from acp_proxy.signin import SignInError, UnreachableError, access_token


def authorization_for(url: str) -> Authorization:
    """For the hubs at `url`. What it raises lets rows wait: they are booked when somebody has signed in."""
    last: str | None = None

    def authorization(renew: bool) -> str:
        nonlocal last
        try:
            last = access_token(url, rejected=last if renew else None)
        except UnreachableError as error:
            raise LedgerUnavailableError(f"ledger {url}: {error}") from error
        except SignInError as error:
            raise LedgerForbiddenError(f"ledger {url}: {error}") from error
        return f"Bearer {last}"

    return authorization
