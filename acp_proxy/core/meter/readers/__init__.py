"""Readers: one for each way in which agents count tokens. The first session imports its own, `load` imports all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.meter.readers.reader import Reader

if TYPE_CHECKING:
    from acp_proxy.core.meter.readers.unknown.scope import ScopeGuess


class Readers:
    """Makes those of one agent's sessions. What is found out of an unknown agent holds for all of them."""

    def __init__(self) -> None:
        self._scope: ScopeGuess | None = None

    def new(self, profile: Profile) -> Reader:
        if profile.known and profile.tokens.scope != "none":
            return _known(profile)
        from acp_proxy.core.meter.readers.unknown.reader import SilentReader, UnknownReader
        from acp_proxy.core.meter.readers.unknown.scope import ScopeGuess

        self._scope = self._scope or ScopeGuess()
        return (SilentReader if profile.known else UnknownReader)(profile, self._scope)


def _known(profile: Profile) -> Reader:
    if profile.tokens.scope == "session":
        from acp_proxy.core.meter.readers.session import SessionReader

        return SessionReader(profile)
    if profile.tokens.scope == "last_call":
        from acp_proxy.core.meter.readers.last_call import LastCallReader

        return LastCallReader(profile)
    if profile.tokens.scope == "call":
        from acp_proxy.core.meter.readers.each_call import EachCallReader

        return EachCallReader(profile)
    from acp_proxy.core.meter.readers.turn import TurnReader

    return TurnReader(profile)


def load() -> None:
    """Import all of them: once a relay has begun, an update of the package may take their files away."""
    from acp_proxy.core.meter.readers import each_call, last_call, session, turn  # noqa: F401
    from acp_proxy.core.meter.readers.unknown import reader, scope  # noqa: F401
