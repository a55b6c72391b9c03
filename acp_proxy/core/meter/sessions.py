"""The accounts of an agent's sessions, and what kind of agent it is."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.agents.lookup import profile_of
from acp_proxy.core.events import Implementation, Meta
from acp_proxy.core.meter import dialects
from acp_proxy.core.meter.readers import Readers
from acp_proxy.core.meter.session_account import SessionAccount


class Sessions:
    """By id. `profiles`, `agent_name` and `aliases` are as `Meter` has them."""

    def __init__(
        self, profiles: Mapping[str, ProfileOverride], agent_name: str | None, aliases: Mapping[str, str]
    ) -> None:
        self._profiles = profiles
        self._agent_name = agent_name
        self._aliases = aliases
        self._profile = profile_of(agent_name, None, profiles)
        self._unnamed = aliases.get(agent_name or "")
        self._readers = Readers()
        self._accounts: dict[str, SessionAccount] = {}

    def initialize(self, agent: Implementation) -> None:
        """What the agent says of itself decides on the sessions that begin from now on."""
        title = None if self._agent_name else agent.title
        self._profile = profile_of(self._agent_name or agent.name, agent.version, self._profiles, title)
        self._unnamed = self._aliases.get(self._agent_name or agent.name or "")

    def get(self, session: str | None) -> SessionAccount | None:
        """None for a session of which nothing was heard."""
        return self._accounts.get(session or "")

    def account(self, session: str) -> SessionAccount:
        """A new one where there is none: updates may name a session before the response that opens it."""
        account = self._accounts.get(session)
        if account is None:
            reader = self._readers.new(self._profile)
            account = self._accounts[session] = SessionAccount(session, self._profile, reader, self._unnamed)
        return account

    def opened(self, session: str) -> SessionAccount:
        """Of a session that is opened. That of a deleted one was kept for what its agent tells late."""
        account = self._accounts.get(session)
        if account is not None and account.deleted and not account.awaited:
            del self._accounts[session]
        return self.account(session)

    def recognize(self, account: SessionAccount, meta: Meta) -> None:
        """An unknown agent may be known by its `_meta`: then it counts as that agent does."""
        before = account.profile
        if before.known or (name := dialects.named_by_its_words(meta)) is None:
            return
        profile = profile_of(name, None, self._profiles)
        if before.overlap.decided:  # the user's word
            profile = replace(profile, overlap=replace(profile.overlap, input=before.overlap.input, decided=True))
        account.count_like(profile, self._readers.new(profile))
