"""`python -m grafana.look BUNDLE PICTURES [DASHBOARD …]`: draws dashboards and says what was not as it should be.

BUNDLE is a directory with what build.mjs made. The clock of the browser stands at the end of the month that is shown.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from acp_proxy.config import load
from acp_proxy.ledger import open_ledger
from grafana.build.__main__ import DIRECTORY
from grafana.look.history import Scrapes
from grafana.look.month import CONFIG, NOW, Month, scrape_times
from harness.prometheus import backfill, prometheus

WIDTH = 1400
NARROWEST = WIDTH // 12
_PAGE = """<!doctype html><meta charset=utf-8><link rel=stylesheet href=/app.css>
<style>body {{ margin: 0; background: #111217; color: #ccccdc; font-family: Inter, DejaVu Sans, sans-serif }}</style>
<div id=root></div><script>window.PROM_URL = {url}; window.DASHBOARD = {dashboard}</script>
<script src=/app.js></script>"""


def main(bundle: Path, pictures: Path, chosen: list[str]) -> int:
    paths = {path.stem: path for path in sorted(DIRECTORY.glob("*.json"))}
    if unknown := set(chosen) - set(paths):
        sys.stderr.write(f"no dashboard {', '.join(sorted(unknown))}: expected of {', '.join(paths)}\n")
        return 2
    pictures.mkdir(parents=True, exist_ok=True)
    troubles = 0
    with tempfile.TemporaryDirectory() as directory, _month(Path(directory)) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for path in [paths[name] for name in chosen or paths]:
            picture = pictures / f"{path.stem.replace('acp-proxy', 'grafana')}.png"
            found = _drawn(browser, bundle, url, path, picture)
            troubles += len(found)
            sys.stderr.write("".join(f"{path.stem}: {line}\n" for line in found or ["drawn"]))
        browser.close()
    return int(troubles > 0)


@contextmanager
def _month(directory: Path) -> Iterator[str]:
    """The URL of a Prometheus that has the month."""
    sys.stderr.write("a month of turns, scrapes of it, and a Prometheus that has them: about two minutes …\n")
    file = directory / "config.toml"
    file.write_text(CONFIG)
    options = {"config": str(file), "ledger": f"sqlite:///{directory}/ledger.db"}
    config = load(options, {"HOME": str(directory)}, admin_file=directory / "none")
    ledger = open_ledger(config.ledger.url, journals=())
    history = directory / "month.om"
    with history.open("w", encoding="utf-8") as out:
        out.writelines(Scrapes(ledger, config).lines(Month(config).happenings(), scrape_times()))
        out.write("# EOF\n")
    ledger.close()
    (directory / "prometheus").mkdir()
    backfill(history, directory / "prometheus", within=900)
    history.unlink()
    with prometheus(directory) as server:
        yield server.url


def _drawn(browser: Browser, bundle: Path, url: str, path: Path, picture: Path) -> list[str]:
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    text = _PAGE.format(url=json.dumps(url), dashboard=json.dumps(dashboard).replace("</", "<\\/"))
    (bundle / "index.html").write_text(text, encoding="utf-8")
    height = 40 + 38 * max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"])
    page = browser.new_page(viewport={"width": WIDTH, "height": height})
    page.clock.set_fixed_time(datetime.fromtimestamp(NOW, UTC))
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    with _served(bundle) as address:
        page.goto(address)
        page.wait_for_function(f"(window.SHOWN?.size ?? 0) >= {_queried(dashboard)}", timeout=60_000)
        page.set_viewport_size({"width": WIDTH - 1, "height": height})  # where the page measured itself too early
        page.set_viewport_size({"width": WIDTH, "height": height})
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(1500)  # charts are drawn in several frames
        page.screenshot(path=picture, full_page=True)
    _made_small(picture)
    found += page.evaluate("window.ISSUES")
    found += _unshown(page, dashboard)
    page.close()
    return found


def _made_small(picture: Path) -> None:
    """In 256 colours, picked so that thin curves keep theirs; then moved to what most of the picture has."""
    with Image.open(picture) as image:
        few = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    few.save(picture, optimize=True)


def _unshown(page: Page, dashboard: dict[str, Any]) -> list[str]:
    shown = page.evaluate("[...window.SHOWN]")
    titles = [panel["title"] for panel in dashboard["panels"] if panel["type"] != "row"]
    found = [f"not shown: {title}" for title in titles if title not in shown]
    widths = page.evaluate("[...document.querySelectorAll('section')].map(each => each.clientWidth)")
    if len(widths) < len(titles) or min(widths) < NARROWEST:
        found.append(f"panels without room: they are {widths} pixels wide")
    return found


def _queried(dashboard: dict[str, Any]) -> int:
    return sum(panel["type"] != "row" for panel in dashboard["panels"])


@contextmanager
def _served(directory: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(directory)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: what is served is what was asked for."""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
