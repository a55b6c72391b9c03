"""`python -m tests.serve.page.pictures DIRECTORY`: pictures of the page, of ten weeks of made-up work."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from playwright.sync_api import Browser, Page

from acp_proxy.core.entry import Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import log_warning
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.places import journal_directories
from harness.rows import row
from tests.serve.house import Home
from tests.serve.page import weeks
from tests.serve.page.browser import WHOLE, chromium

ZONES = (
    "UTC",
    "Asia/Karachi",
    "Asia/Tokyo",
    "Pacific/Auckland",
    "Pacific/Honolulu",
    "America/Denver",
    "America/Recife",
)
DESK, LOW, PHONE = ({"width": width, "height": height} for width, height in ((1280, 860), (1280, 720), (390, 844)))
SECOND = 10**9


def main(directory: Path) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="see-page-") as temporary, chromium(WHOLE) as browser:
        empty, home = (Home(Path(temporary) / name) for name in ("empty", "home"))
        for each in (empty, home):
            each.path.mkdir()
        with empty.serving() as served:
            shoot(browser, served.address, directory / "page-empty.png", DESK, "light", "#welcome:not([hidden])")
        home.configure(weeks.BUDGETS)
        home.append(weeks.rows(time.time_ns()))
        with running_turn(home), home.serving() as served:
            shoot(browser, served.address, directory / "page-light.png", DESK, "light")
            agents = f"{served.address}#/month/agent"
            shoot(browser, agents, directory / "page-dark.png", DESK, "dark", below="#figures")
            shoot(browser, served.address, directory / "page-sessions.png", LOW, "light", below="#budgets")
            shoot(browser, served.address, directory / "page-phone.png", PHONE, "light")
            view = f"{served.address}#/{dates()}/model?project=payments-api&sort=cost"
            shoot(browser, view, directory / "page-filtered.png", DESK, "light")
            session = home.json("report", "--by", "session", "--title", "order states")["rows"][0]["key"]
            address = f"{served.address}#/session/{session}"
            shoot(browser, address, directory / "page-session.png", DESK, "light", "#turn-table tr")
    return 0


def shoot(
    browser: Browser, address: str, file: Path, size: Any, scheme: Any, until: str = "#figures:not([hidden])",
    below: str | None = None,
) -> None:  # fmt: skip
    context = browser.new_context(viewport=size, color_scheme=scheme, timezone_id=afternoon(), reduced_motion="reduce")
    page: Page = context.new_page()
    page.goto(address)
    page.locator(until).first.wait_for()
    if "empty" not in file.name:
        page.get_by_text("1 turn running").wait_for()
    if below:
        page.locator(below).evaluate("element => scrollTo(0, element.offsetTop - 16)")
    page.screenshot(path=file)
    context.close()
    sys.stdout.write(f"{file} {file.stat().st_size // 1024} KiB\n")


def dates() -> str:
    """Six weeks that ended some days ago."""
    last = datetime.now(ZoneInfo(afternoon())).date() - timedelta(days=5)
    return f"{last - timedelta(days=41)}..{last}"


def afternoon() -> str:
    """A zone where somebody is at work now: a day that has only begun shows little."""
    return min(ZONES, key=lambda zone: abs(datetime.now(ZoneInfo(zone)).hour - 16))


@contextmanager
def running_turn(home: Home) -> Iterator[None]:
    """As a proxy keeps it, in a journal whose owner lives."""
    now = time.time_ns()
    agent = weeks.CLAUDE
    title = "Untangle the order states"
    last = home.json("report", "--by", "session", "--title", title)["rows"][0]
    origin = Origin("default", "alice", "core", last["project"], "laptop", agent.name, agent.version, agent.client)
    usage = UsageLine(agent.model, Usage(), Money(84_300_000, "USD"))
    so_far = row(
        usage, id="ffffffff-0000-7000-8000-000000000000", origin=origin, session=last["session"],
        at=now - 83 * SECOND, took=83 * SECOND, stop_reason=None, usage_source="none", cost_source="agent",
        context_used=61_400, context_size=agent.size,
    )  # fmt: skip
    journal = open_journal(journal_directories(home.environ), home.url, log_warning)
    slot = journal.write_open(so_far)
    yield
    if slot is not None:
        journal.done(slot)
    journal.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
