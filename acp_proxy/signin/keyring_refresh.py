"""Renews an access token with what a keyring has, in a process of its own. Its caller has the lock."""

from __future__ import annotations

import os
import sys

from acp_proxy.signin import SignInError, UnreachableError, token_refresh, token_store


def main(hub: str) -> int:
    try:
        found, secret = token_store.read(hub, os.environ), token_store.in_keyring(hub)
        if found is None or secret is None:
            raise SignInError(f"{hub}: nobody is signed in: run acp-proxy login {hub}")
        token_refresh.renew(found, secret, os.environ)
    except SignInError as error:
        sys.stderr.write(f"{error}\n")
        return os.EX_TEMPFAIL if isinstance(error, UnreachableError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
