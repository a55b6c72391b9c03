"""The routes of the page: its files, and its figures for who has signed in with this browser."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from acp_proxy.hub.auth.parts import Desk
from acp_proxy.hub.page.administration import Administration
from acp_proxy.hub.page.figures import VIEWS, Figures, View
from acp_proxy.hub.page.parts import PEOPLE, Endpoint, answered, signed_in
from acp_proxy.serve.assets import Asset, asset, page_assets, read_files
from acp_proxy.serve.site import asked_of, send_asset


class Page:
    """`figures` are asked for who has signed in, and for nobody else."""

    def __init__(self, desk: Desk, figures: Figures) -> None:
        self._desk = desk
        self._figures = figures

    def routes(self) -> list[Route]:
        found = [Route("/", partial(self._start, _with_hub(page_assets()["/"])), methods=["GET"])]
        found += [Route(path, partial(send_asset, each), methods=["GET"]) for path, each in _files().items()]
        found += [Route(path, self._figure(view), methods=["GET"]) for path, view in VIEWS.items()]
        return found + Administration(self._desk).routes()

    async def _start(self, page: Asset, request: Request) -> Response:
        return await signed_in(self._desk, request, PEOPLE, lambda _: send_asset(page, request))

    def _figure(self, view: View) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            return await answered(
                self._desk, request, PEOPLE, lambda who: self._figures.ask(who, view, asked_of(request))
            )

        return endpoint


def _files() -> dict[str, Asset]:
    """Those of `serve`, and the hub's own; they hold nothing of anybody."""
    found = {path: each for path, each in page_assets().items() if path != "/"}
    own = read_files(files("acp_proxy.hub.page").joinpath("files"))
    return found | {f"/{name}": asset(name, body) for name, body in own if not name.endswith(".html")}


def _with_hub(page: Asset) -> Asset:
    """The page of `serve` with who has signed in, and the way out."""
    more = b'<link rel="stylesheet" href="hub.css">\n<script type="module" src="hub.js"></script>\n</head>'
    return asset("index.html", page.body.replace(b"</head>", more, 1))
