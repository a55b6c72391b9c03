"""All routes that machines and browsers sign in by, for the application that a hub is."""

from __future__ import annotations

from starlette.routing import Route

from acp_proxy.hub.auth.browsers import Browsers
from acp_proxy.hub.auth.machines import Machines
from acp_proxy.hub.auth.parts import Desk
from acp_proxy.hub.scim.routes import Provisioning


def routes(desk: Desk) -> list[Route]:
    """None of them needs a token, and all of them check what they are sent."""
    return [*Machines(desk).routes(), *Browsers(desk).routes(), *Provisioning(desk).routes()]
