"""All routes that machines and browsers sign in by, for the application that a hub is."""

from __future__ import annotations

from collections.abc import Callable

from starlette.routing import Route

from acp_proxy.hub.auth.authenticator import Authenticator
from acp_proxy.hub.auth.browsers import Browsers
from acp_proxy.hub.auth.machines import Machines
from acp_proxy.hub.auth.parts import Desk
from acp_proxy.hub.scim.routes import Provisioning
from acp_proxy.hub.settings import Settings
from acp_proxy.hub.store import Ask


def routes(settings: Settings, ask: Ask, authenticator: Authenticator, clock: Callable[[], int]) -> list[Route]:
    """`clock` gives Unix seconds. None of them needs a token, and all of them check what they are sent."""
    desk = Desk(settings, ask, authenticator, clock)
    return [*Machines(desk).routes(), *Browsers(desk).routes(), *Provisioning(desk).routes()]
