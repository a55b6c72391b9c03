"""`python -m tests.hub.page.pictures DIRECTORY`: pictures of a hub's page for each role, of ten weeks of a team."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from playwright.sync_api import Browser

from acp_proxy.hub.identity import Role
from acp_proxy.hub.settings import Settings
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.people import Person
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.ledger.hub.policy import Changes, Document
from acp_proxy.policy import changed
from tests.hub.page.house import Hub
from tests.serve.page import weeks
from tests.serve.page.browser import WHOLE, chromium
from tests.serve.page.pictures import afternoon

TEAM = (("alice", "core"), ("bea", "core"), ("chris", "web"), ("dana", "web"))
SIZE = {"width": 1000, "height": 520}
BUDGETS: dict[str, Any] = {
    "each developer": {"per": "user", "window": "month", "limit": {"amount": "30", "currency": "USD"}},
    "core": {"window": "month", "limit": {"amount": "40", "currency": "USD"}, "scope": {"team": "core"}},
    "everybody": {"window": "month", "limit": {"amount": "100", "currency": "USD"}, "mode": "warn"},
}
PICTURES: tuple[tuple[str, Role, str, str, str, str], ...] = (  # file, role, user, address, colours, from where on
    ("hub-administration.png", "administrator", "alice", "/administration", "light", "h1"),
    ("hub-lead.png", "lead", "alice", "/#/month/user", "light", "#figures"),
    ("hub-developer.png", "developer", "bea", "/#/month/model", "dark", "#budgets"),
)


def main(directory: Path) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="see-hub-") as temporary, chromium(WHOLE) as browser:
        ledger = f"sqlite:///{temporary}/ledger.db"
        with closing(open_ledger(ledger, journals=())) as opened:
            opened.append(list(_of_all(weeks.rows(time.time_ns()))))
        with Hub(ledger, Settings(organisation="default")).running() as hub:
            hub.store(lambda store: _fill(store, hub.now()))
            for file, role, user, address, colours, below in PICTURES:
                team = dict(TEAM)[user]
                cookie = hub.cookie(user, role, team, (team,) if role == "lead" else ())
                _shoot(browser, hub.url + address, cookie, directory / file, colours, below)
    return 0


def _of_all(rows: list[Row]) -> Iterator[Row]:
    """Each session is of one of the team."""
    for row in rows:
        user, team = TEAM[sum(row.entry.session.encode()) % len(TEAM)]
        yield replace(row, origin=replace(row.origin, user=user, team=team))


def _fill(store: Store, now: int) -> None:
    for user, team in TEAM:
        store.people.arrive(Person(user, "developer", team, name=user.title()), user, now)
    store.policies.change(lambda _: changed(Document(), Changes(BUDGETS)), None, "alice", now)


def _shoot(browser: Browser, address: str, cookie: str, file: Path, colours: Any, below: str) -> None:
    context = browser.new_context(
        viewport=SIZE,  # type: ignore[arg-type]  # a TypedDict of its own
        color_scheme=colours,
        timezone_id=afternoon(),
        reduced_motion="reduce",
    )
    name, _, value = cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": address.partition("/#")[0]}])
    page = context.new_page()
    page.goto(address)
    page.locator("#figures:not([hidden]), #audit table").first.wait_for()
    page.locator("#signed-in").wait_for()
    page.locator(below).evaluate("element => scrollTo(0, element.offsetTop - 16)")
    page.screenshot(path=file)
    context.close()
    sys.stdout.write(f"{file} {file.stat().st_size // 1024} KiB\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
