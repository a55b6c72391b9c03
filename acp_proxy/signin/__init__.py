"""Signing in at a hub: tokens on this machine, and their silent refresh. `access_token` is what everybody else needs.

The standard library asks the hub, so that a relay's worker can; `keyring` is imported only by `login` and by a process
that renews what is kept there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "ACP_PROXY_HUB_TOKEN"
"""The environment's variable with a token for programs such as CI; it goes before what was signed in."""


class SignInError(Exception):
    """Nobody is signed in (any more); the text is one line that says what to run."""


class UnreachableError(SignInError):
    """The hub does not answer: the same call may succeed later."""


def access_token(url: str, *, rejected: str | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """A token for the hubs at `url`, refreshed if its time is nearly over or it is the one that a hub has `rejected`.

    Blocks; may be called in any thread and by any number of processes. Raises SignInError.
    """
    from acp_proxy.signin.token_refresh import current

    return current(url, rejected, environ)
