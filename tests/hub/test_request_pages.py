"""The page of a request for more: who sees it, who decides there, and what another site cannot send."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import pytest

from acp_proxy.core.budget.requests import MoreRequest, Wish
from acp_proxy.core.notice import more_asked
from acp_proxy.hub.settings import Database, Settings
from acp_proxy.hub.site import Site
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.people import Person
from acp_proxy.ledger import open_ledger
from harness.hub import served
from harness.rows import NOON

WISH = Wish("r1", "admin", "daily", "user", "bob", 5_000_000_000, "USD", "the <b>release</b>")
NOW = NOON // 10**9
PATH = "/requests/r1"


class Browser:
    """Signed in as somebody, at a hub to whose clock it is noon."""

    def __init__(self, port: int, cookie: str) -> None:
        self._port = port
        self._cookie = cookie

    def asks(self, path: str = PATH, sent: dict[str, str] | None = None) -> tuple[int, str, str]:
        """Status, text, and where it is sent on to."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=20)
        headers = {"Cookie": f"acp-proxy={self._cookie}", "Content-Type": "application/x-www-form-urlencoded"}
        with closing(connection):
            connection.request("POST" if sent else "GET", path, urlencode(sent) if sent else None, headers)
            response = connection.getresponse()
            return response.status, response.read().decode(), response.headers.get("location", "")

    def decides(self, **sent: str) -> tuple[int, str, str]:
        found = re.search(r'name="csrf" value="(\w+)"', self.asks()[1])
        assert found
        return self.asks(sent={"csrf": found[1], **sent})


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def people(url: str) -> Iterator[dict[str, Browser]]:
    settings = Settings(database=Database(url))
    cookies = {}
    with closing(open_ledger(url, journals=())) as ledger:
        store = Store(ledger.tables, settings.organisation)
        for person in (Person("bob", team="blue"), Person("eve"), Person("lead", "lead", leads=("blue",))):
            store.people.arrive(person, "hub", NOW)
            cookies[person.user], _ = store.tokens.begin_session(person.user, None, NOW, NOW + 3600)
        notice = more_asked(settings.organisation, "bob", "blue", WISH, None, NOON)
        store.requests.ask(MoreRequest(WISH, "bob", "blue", NOON), notice)
    site = Site(settings, {}, lambda event, **fields: None, lambda: NOON)
    with served(site.application) as port:
        yield {user: Browser(port, cookie) for user, cookie in {**cookies, "": ""}.items()}
    site.ledgers.close(5.0)


def test_a_lead_approves_with_an_amount_and_an_end(people: dict[str, Browser], url: str) -> None:
    status, text, _ = people["lead"].asks()
    assert status == 200
    assert "the &lt;b&gt;release&lt;/b&gt;" in text
    assert 'value="5"' in text
    decided = people["lead"].decides(decision="approve", amount="2.5", lasting="1d", note="until tomorrow")
    assert (decided[0], decided[2]) == (303, PATH)
    with closing(open_ledger(url, journals=())) as ledger:
        (grant,) = ledger.grants("default", NOON + 1)
    assert (grant.budget, grant.value, grant.amount, grant.who) == ("daily", "bob", 2_500_000_000, "lead")
    _, text, _ = people["bob"].asks()
    assert "approved by lead: $2.50" in text
    assert "<form" not in text


def test_a_lead_denies_and_says_why(people: dict[str, Browser], url: str) -> None:
    assert people["lead"].decides(decision="deny", note="next week")[0] == 303
    assert "next week" in people["bob"].asks()[1]
    with closing(open_ledger(url, journals=())) as ledger:
        assert ledger.grants("default") == []


def test_who_asked_sees_it_and_cannot_decide(people: dict[str, Browser]) -> None:
    status, text, _ = people["bob"].asks()
    assert (status, "<form" in text) == (200, False)
    assert people["bob"].asks(sent={"csrf": "0" * 64, "decision": "approve"})[0] == 403


def test_it_is_not_there_for_others_and_who_is_not_signed_in_is_led_there(people: dict[str, Browser]) -> None:
    assert people["eve"].asks()[0] == 404
    assert people["lead"].asks("/requests/other")[0] == 404
    status, _, onward = people[""].asks()
    assert (status, onward) == (303, "/signin?next=%2Frequests%2Fr1")


def test_a_form_of_another_site_decides_nothing(people: dict[str, Browser]) -> None:
    sent = {"decision": "approve", "amount": "5", "lasting": "1d"}
    assert people["lead"].asks(sent=sent)[0] == 403
    assert people["lead"].asks(sent={**sent, "csrf": "0" * 64})[0] == 403
    assert "<form" in people["lead"].asks()[1]


@pytest.mark.parametrize(("amount", "lasting"), [("", "1d"), ("-5", "1d"), ("0", "1d"), ("NaN", "1d"), ("5", "ever")])
def test_what_is_no_amount_or_end_is_one_line(people: dict[str, Browser], amount: str, lasting: str) -> None:
    status, text, _ = people["lead"].decides(decision="approve", amount=amount, lasting=lasting)
    assert (status, "expected" in text) == (400, True)
    assert "<form" in people["lead"].asks()[1]
