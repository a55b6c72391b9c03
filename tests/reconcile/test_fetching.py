"""Bills that are fetched each day: once by several processes, again where it failed, and the key is nowhere."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.bills import read
from acp_proxy.catalog import Catalog
from acp_proxy.config import ConfigError, load
from acp_proxy.core.windows import DAY, HOUR, SECOND
from acp_proxy.ledger import bill_sources, captures, open_ledger
from acp_proxy.ledger.bill_sources import LEASE, BillSource
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.captures import Capture
from acp_proxy.reconcile.fetching import Fetching, Known
from harness.rows import line, row
from tests.bills.made import Call, anthropic
from tests.ledger.warned import Warnings
from tests.reconcile.month import FIRST, priced
from tests.reconcile.provider import KEY, Api, Reply, daily, said, serving

DAYS = 20
MORNING = (FIRST + DAYS) * DAY + 5 * HOUR
PAGES = 2 * 3  # of usage and of costs


def call_on(day: int) -> Call:
    return priced(Call(day, tokens=(2000 + day % 7, 7, 0, 0, 20)))


answering = daily(call_on)


class House:
    """A ledger and a configuration; `now` can be set."""

    def __init__(self, directory: Path, url: str) -> None:
        self.directory = directory
        self.url = url
        self.now = MORNING
        self.warnings = Warnings()
        self.environ = {"HOME": str(directory), "USER": "alice", "ADMIN_KEY": KEY}
        with closing(open_ledger(url, journals=())) as ledger:
            ledger.append([row(line("claude-sonnet-5", "0.002", input=1000, output=10), at=FIRST * DAY)])

    def fetching(self, api: str, *, known: Known | None = None, key: str = "${ADMIN_KEY}") -> Fetching:
        file = self.directory / "config.toml"
        file.write_text(
            f'[ledger]\nurl = "{self.url}"\n[bills.anthropic]\nkey = "{key}"\nurl = "{api}"\ndays = {DAYS}\n',
            encoding="utf-8",
        )
        config = load({"config": str(file)}, self.environ, admin_file=self.directory / "none.toml")
        found = Fetching.of(config, self.environ, self.warnings, known, clock=lambda: self.now)
        assert found is not None
        return found

    @property
    def kept(self) -> list[Capture]:
        with closing(open_ledger(self.url, journals=())) as ledger:
            return captures.latest(ledger.tables.read, "default")

    @property
    def source(self) -> BillSource:
        with closing(open_ledger(self.url, journals=())) as ledger:
            (found,) = ledger.bill_sources("default")
            return found


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, f"sqlite:///{tmp_path}/ledger.db")


@pytest.fixture
def api() -> Iterator[Api]:
    with serving(answering) as found:
        yield found


def test_a_bill_is_fetched_once_a_day_when_its_figures_are_there(house: House, api: Api) -> None:
    fetching = house.fetching(api.url)
    assert fetching.round() == 600
    assert len(api.seen) == PAGES
    (kept,) = house.kept
    bill = read("anthropic", anthropic([call_on(FIRST + day) for day in range(DAYS)]), {})
    assert (kept.since, kept.until, kept.noted_at) == (FIRST * DAY, (FIRST + DAYS) * DAY, MORNING)
    assert (kept.billed_tokens, kept.seen_tokens) == (sum(each.tokens for each in bill.lines), 1010)
    assert kept.billed == sum(each.amount.nano for each in bill.lines if each.amount)
    house.now = (FIRST + DAYS + 1) * DAY + 4 * HOUR - SECOND
    assert fetching.round() == 60  # a second is not worth a look
    assert len(api.seen) == PAGES
    house.now += SECOND
    fetching.round()
    assert len(api.seen) == 2 * PAGES
    (later,) = house.kept
    assert (later.since, later.until) == (kept.since + DAY, kept.until + DAY)
    assert house.warnings.told == []


def test_of_several_processes_one_asks(house: House) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(path: str, query: Mapping[str, list[str]], number: int) -> Reply:
        asked.set()
        assert go_on.wait(60)
        return answering(path, query, number)

    with serving(answer) as api, ThreadPoolExecutor(1) as thread:
        one, other = house.fetching(api.url), house.fetching(api.url)
        first = thread.submit(one.round)
        assert asked.wait(60)
        assert other.round() == 60
        go_on.set()
        first.result(60)
        other.round()
        assert len(api.seen) == PAGES
    assert len(house.kept) == 1


def test_who_was_killed_meanwhile_is_followed_by_another(house: House, api: Api) -> None:
    with closing(open_ledger(house.url, journals=())) as ledger:
        assert ledger.tables.write(lambda run: bill_sources.claim(run, "default", "anthropic", "killed", house.now))
    fetching = house.fetching(api.url)
    fetching.round()
    assert api.seen == []
    house.now += LEASE
    fetching.round()
    assert len(api.seen) == PAGES
    assert len(house.kept) == 1


def test_a_clock_that_was_set_back_holds_nothing_up(house: House, api: Api) -> None:
    fetching = house.fetching(api.url)
    house.now += 300 * DAY
    fetching.round()  # of days without any bill
    house.now -= 300 * DAY
    before = len(api.seen)
    fetching.round()
    assert len(api.seen) > before


TROUBLES: list[tuple[str, Reply, str, int]] = [
    ("a refused key", Reply(401), "refused the key (401)", 300),
    ("too often", Reply(429, headers={"Retry-After": "3600"}), "is asked too often (429)", 3600),
    ("a wait without an end", Reply(429, headers={"Retry-After": "9" * 9}), "is asked too often (429)", 86_400),
    ("an error of its own", Reply(503, headers={"Retry-After": "1800"}), "cannot answer now (503)", 1800),
    ("half a body", Reply(body=b'{"data": [', cut=20), "ended its answer early", 300),
    ("half a page", Reply(body=b'{"data": ['), "expected an answer in pages", 300),
    ("a page in a circle", said({"data": [], "has_more": True, "next_page": None}), "expected a next_page", 300),
    ("a redirect", Reply(302, headers={"Location": "http://127.0.0.1:1/"}), "answered 302", 300),
]


@pytest.mark.parametrize(
    ("answer", "trouble", "pause"), [each[1:] for each in TROUBLES], ids=[each[0] for each in TROUBLES]
)
def test_what_fails_is_one_line_is_tried_again_and_loses_nothing(
    house: House, answer: Reply, trouble: str, pause: int
) -> None:
    fails = False

    def wire(path: str, query: Mapping[str, list[str]], number: int) -> Reply:
        return answer if fails else answering(path, query, number)

    with serving(wire) as api:
        fetching = house.fetching(api.url)
        fetching.round()
        (before,) = house.kept
        fails, house.now = True, house.now + DAY
        fetching.round()
        tried = len(api.seen)
        source = house.source
        assert trouble in source.trouble
        assert (source.failures, source.tried_at, source.fetched_at) == (1, house.now, MORNING)
        assert (source.due_at - house.now) // SECOND == pause
        house.now = source.due_at - SECOND
        fetching.round()
        assert len(api.seen) == tried
        house.now = source.due_at
        fetching.round()
        assert house.source.failures == 2
        assert house.source.due_at > house.now + pause * SECOND // 2
        assert house.kept == [before]
        fails, house.now = False, house.source.due_at
        fetching.round()
    assert house.source.trouble == ""
    assert house.kept[0].noted_at == house.now
    (event, fields), (over, _) = house.warnings.told
    assert (event, over) == ("bills.not_fetched", "bills.fetched_again")
    assert fields["provider"] == "anthropic"
    assert trouble in str(fields["error"])


def test_a_provider_that_is_away_is_tried_ever_more_seldom(house: House) -> None:
    with serving(answering) as api:
        pass
    fetching = house.fetching(api.url)
    pauses = list[int]()
    for _ in range(6):
        fetching.round()
        pauses.append((house.source.due_at - house.now) // SECOND)
        house.now = house.source.due_at
    assert pauses == [300, 600, 1200, 2400, 3600, 3600]
    assert [event for event, _ in house.warnings.told] == ["bills.not_fetched"]
    assert "127.0.0.1 cannot be reached: connection refused" in house.source.trouble


def test_the_key_is_in_no_table_and_no_line(house: House) -> None:
    answers = iter([Reply(401), Reply(500), Reply(body=KEY.encode()), *[None] * PAGES])

    def wire(path: str, query: Mapping[str, list[str]], number: int) -> Reply:
        return next(answers) or answering(path, query, number)

    with serving(wire) as api:
        fetching = house.fetching(api.url)
        while not house.kept:
            fetching.round()
            assert house.source.trouble or house.kept
            house.now = house.source.due_at
        assert {headers["x-api-key"] for _, _, headers in api.seen} == {KEY}
    assert len(house.warnings.told) >= 3
    assert KEY not in repr(house.warnings.told)
    assert KEY not in repr(vars(fetching)["_asked"])
    for file in house.directory.iterdir():
        assert KEY.encode() not in file.read_bytes()


def test_a_key_that_was_replaced_in_its_file_is_taken_at_the_next_try(house: House, api: Api) -> None:
    file = house.directory / "key"
    file.write_text("old\n")
    fetching = house.fetching(api.url, key=f"${{file:{file}}}")
    file.unlink()
    fetching.round()
    assert (
        house.source.trouble == f"bills.anthropic.key: {file}: expected a file with the key: no such file or directory"
    )
    file.write_text("new\n")
    house.now = house.source.due_at
    fetching.round()
    assert {headers["x-api-key"] for _, _, headers in api.seen} == {"new"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("anthropic.days = 30", "bills.anthropic.key: expected ${NAME} or ${file:PATH}"),
        ('anthropic.key = "${NONE}"', "bills.anthropic.key: the environment has no NONE"),
        ('litellm.key = "${ADMIN_KEY}"', "bills.litellm.url: expected the address of your litellm"),
        (
            'openai = {key = "${ADMIN_KEY}", url = "http://example.com"}',
            "bills.openai.url: expected https://, because the key goes there in the clear: http://example.com",
        ),
    ],
)
def test_what_cannot_be_fetched_is_told_before_it_starts(house: House, text: str, told: str) -> None:
    file = house.directory / "config.toml"
    file.write_text(f"[bills]\n{text}\n")
    config = load({"config": str(file)}, house.environ, admin_file=house.directory / "none.toml")
    with pytest.raises(ConfigError) as error:
        Fetching.of(config, house.environ, house.warnings)
    assert str(error.value) == told


def test_without_a_provider_there_is_nothing_to_do(house: House) -> None:
    config = load({}, house.environ, admin_file=house.directory / "none.toml")
    assert Fetching.of(config, house.environ, house.warnings) is None


async def test_who_ends_while_a_provider_is_asked_lets_another_go_on(house: House) -> None:
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def answer(path: str, query: Mapping[str, list[str]], number: int) -> Reply:
        if number == 0:
            loop.call_soon_threadsafe(asked.set)
            assert one._ended.wait(60)  # an answer that came before the end would have the next page asked for
        return answering(path, query, number)

    with serving(answer) as api:
        one, other = house.fetching(api.url), house.fetching(api.url)
        running = asyncio.create_task(one.run())
        await asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(api.seen) == 1
        await asyncio.to_thread(other.round)
        assert len(api.seen) == 1 + PAGES
    assert len(house.kept) == 1


def test_a_ledger_that_is_away_is_told_once_and_looked_at_again(house: House, api: Api) -> None:
    fetching = house.fetching(api.url)
    ledger = house.directory / "ledger.db"
    ledger.rename(ledger.with_suffix(".away"))
    ledger.mkdir()
    assert (fetching.round(), fetching.round()) == (60, 60)
    assert house.warnings.events == ["bills.waits"]
    assert api.seen == []
    ledger.rmdir()
    ledger.with_suffix(".away").rename(ledger)
    fetching.round()
    assert len(house.kept) == 1


def test_a_bill_that_nobody_thought_of_ends_nothing(house: House, api: Api) -> None:
    def known(_: BudgetLedger) -> Catalog:
        raise KeyError("something")

    house.fetching(api.url, known=known).round()
    assert house.source.trouble == "KeyError: please report it"
    assert house.kept == []
