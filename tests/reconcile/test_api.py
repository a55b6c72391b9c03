"""A bill out of an API: the same as that of its files, and one line for each way in which an API fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.bills import BillError, File, Provider, date_of, read
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import open_ledger
from acp_proxy.reconcile.api.client import Client
from acp_proxy.reconcile.api.keys import key_of
from acp_proxy.reconcile.api.listings import PROVIDED, WITH_API, ApiOf, Listing, listings
from acp_proxy.reconcile.api.pages import pages
from acp_proxy.system.errors import UsageError
from harness.rows import line, row
from tests.bills.made import FORMS, Call, anthropic
from tests.reconcile.month import FIRST, priced
from tests.reconcile.provider import KEY, Reply, Wire, paged, said, serving

USAGE, COST = "/v1/organizations/usage_report/messages", "/v1/organizations/cost_report"
CALLS = [priced(Call(FIRST + day, tokens=(2000 + day, 7, 0, 0, 20))) for day in range(20)]
LISTING = Listing("usage of November", USAGE, (("limit", "31"),))


def data_of(files: Sequence[File]) -> Mapping[str, list[Any]]:
    """The buckets of each page, by the path that gives them."""
    found: dict[str, list[Any]] = {USAGE: [], COST: []}
    for file in files:
        found[USAGE if file.name.startswith("usage") else COST].append(json.loads(file.content)["data"])
    return found


def asked(answer: Wire, listing: Listing = LISTING, pauses: list[float] | None = None) -> list[File]:
    with serving(answer) as api:
        waited = pauses if pauses is not None else list[float]()
        client = Client(api.url, PROVIDED["anthropic"], KEY, waited.append)
        return list(pages(listing, client.ask))


def refused(answer: Wire, pauses: list[float] | None = None) -> str:
    with pytest.raises(BillError) as error:
        asked(answer, pauses=pauses)
    text = str(error.value)
    assert "\n" not in text
    assert KEY not in text
    assert text.startswith("usage of November, page ")
    return text.removeprefix("usage of November, page ")


def test_pages_are_read_one_after_the_other_to_the_last() -> None:
    found = asked(paged(data_of(anthropic(CALLS))))
    assert [file.name for file in found] == [f"usage of November, page {number}" for number in (1, 2, 3)]
    files = [file for file in anthropic(CALLS) if file.name.startswith("usage")]
    assert read("anthropic", found, {}).lines == read("anthropic", files, {}).lines


@pytest.mark.parametrize("provider", WITH_API)
def test_no_question_is_about_more_days_than_a_provider_answers(provider: ApiOf) -> None:
    days = range(FIRST, FIRST + 90)
    found = list(listings(provider, days, "model"))
    assert len(found) == {"anthropic": 6, "openai": 6, "litellm": 1}[provider]
    said = [dict(each.query) for each in found]
    assert {each.name for each in found if provider != "litellm"} <= {
        f"{kind} of {date_of(first)} to {date_of(last)}"
        for kind in ("usage", "cost")
        for first, last in ((FIRST, FIRST + 30), (FIRST + 31, FIRST + 61), (FIRST + 62, FIRST + 89))
    }
    if provider == "anthropic":
        assert said[0]["starting_at"] == f"{date_of(FIRST)}T00:00:00Z"
        assert said[0]["ending_at"] == said[2]["starting_at"] == f"{date_of(FIRST + 31)}T00:00:00Z"
        assert said[-1]["ending_at"] == f"{date_of(FIRST + 90)}T00:00:00Z"


@pytest.mark.parametrize(("by", "who"), [("key", "api_key_id"), ("user", "user_id"), ("day", None)])
def test_who_used_it_is_asked_for_only_where_it_is_wanted(by: Any, who: str | None) -> None:
    usage = next(iter(listings("openai", range(FIRST, FIRST + 1), by)))
    assert [value for name, value in usage.query if name == "group_by[]"] == ["model", *([who] if who else [])]


def test_the_key_goes_in_the_header_that_each_provider_wants() -> None:
    cases: list[tuple[ApiOf, str, str]] = [
        ("anthropic", "x-api-key", KEY),
        ("openai", "authorization", f"Bearer {KEY}"),
        ("litellm", "authorization", f"Bearer {KEY}"),
    ]
    for provider, header, value in cases:
        with serving(lambda path, query, number: said({"data": []})) as api:
            Client(api.url, PROVIDED[provider], KEY, list[float]().append).ask("a page", LISTING, None)
        ((path, query, headers),) = api.seen
        assert (path, query, headers[header]) == (USAGE, {"limit": ["31"]}, value)


def test_a_refused_key_is_said_at_once() -> None:
    pauses = list[float]()
    assert refused(lambda *_: Reply(401), pauses) == (
        "1: 127.0.0.1 refused the key (401): expected an admin key of the organisation"
    )
    assert pauses == []


def test_what_is_asked_too_often_is_asked_again_after_the_pause_that_is_wanted() -> None:
    right, pauses = paged(data_of(anthropic(CALLS))), list[float]()

    def answer(path: str, query: Mapping[str, list[str]], number: int) -> Reply:
        return Reply(429, headers={"Retry-After": "7"}) if number < 2 else right(path, query, number)

    assert len(asked(answer, pauses=pauses)) == 3
    assert pauses == [7, 7]


def test_three_tries_are_enough_and_a_long_pause_is_not_waited_for() -> None:
    pauses = list[float]()
    assert refused(lambda *_: Reply(429), pauses) == "1: 127.0.0.1 is asked too often (429): try again later"
    assert pauses == [1, 2]
    pauses.clear()
    long = Reply(429, headers={"Retry-After": "3600"})
    assert refused(lambda *_: long, pauses) == "1: 127.0.0.1 is asked too often (429): try again in 3600 s"
    assert pauses == []


def test_an_api_that_cannot_answer_is_said_after_three_tries() -> None:
    pauses = list[float]()
    assert refused(lambda *_: Reply(500), pauses) == "1: 127.0.0.1 cannot answer now (500): try again later"
    assert pauses == [1, 2]


def test_half_a_body_is_no_answer() -> None:
    body = json.dumps({"data": [], "has_more": False}).encode()
    assert refused(lambda *_: Reply(body=body[:10], cut=20)) == ("1: 127.0.0.1 ended its answer early, after 10 bytes")
    assert refused(lambda *_: Reply(body=body[:10])).startswith("1: expected an answer in pages: ")


def test_an_answer_of_another_kind_names_what_was_expected() -> None:
    assert refused(lambda *_: Reply(404)).startswith("1: 127.0.0.1 does not know this question (404)")
    assert (
        refused(lambda *_: Reply(302, headers={"Location": "/elsewhere"})) == "1: 127.0.0.1 answered 302: expected 200"
    )


def test_nobody_there_is_one_line() -> None:
    with serving(lambda *_: Reply()) as api:
        pass
    with pytest.raises(BillError, match=r"^a page: 127\.0\.0\.1 cannot be reached: connection refused$"):
        Client(api.url, PROVIDED["anthropic"], KEY, list[float]().append).ask("a page", LISTING, None)


def test_a_page_that_names_one_before_it_is_not_read_for_ever() -> None:
    buckets = data_of(anthropic(CALLS))[USAGE]
    circle = {"has_more": True, "next_page": "next-1"}
    assert refused(lambda path, query, number: said({"data": buckets[0], **circle})) == (
        "2: its next_page was read before (next-1): expected one that follows"
    )
    nowhere = said({"data": buckets[0], "has_more": True})
    assert refused(lambda *_: nowhere) == "1: expected a next_page, because has_more is true"


def test_missing_and_overlapping_buckets_are_said_by_page() -> None:
    first, second, third = data_of(anthropic(CALLS))[USAGE]
    missing = asked(paged({USAGE: [first, third]}))
    with pytest.raises(BillError, match=r"^usage of November, page 1: a page is missing: expected the one after"):
        read("anthropic", missing, {})
    other = {**first[-1], "results": []}  # of the same day, and says that nothing was used
    with pytest.raises(BillError, match=r"^usage of November, page 1 has usage of .* and usage of November, page 2 of"):
        read("anthropic", asked(paged({USAGE: [first, [other, *second], third]})), {})


def test_a_page_that_comes_twice_counts_once() -> None:
    first, second, third = data_of(anthropic(CALLS))[USAGE]
    twice = read("anthropic", asked(paged({USAGE: [first, second, second, third]})), {})
    assert twice.lines == read("anthropic", asked(paged({USAGE: [first, second, third]})), {}).lines


@pytest.mark.parametrize("form", ["openai", "litellm"])
def test_the_other_providers_are_read_in_the_same_way(form: str) -> None:
    provider: Provider = FORMS[form][0]
    made = FORMS[form][1](CALLS)
    of: dict[str, list[bytes]] = {}
    for file in made:
        kind = file.name.split("-")[0]
        of.setdefault(kind, []).append(file.content)

    def answer(path: str, query: Mapping[str, list[str]], number: int) -> Reply:
        kind = "cost" if path.endswith("costs") else "usage" if "usage" in path else "activity"
        at = int(query["page"][0]) - 1 if kind == "activity" else len([1 for seen in api.seen if seen[0] == path]) - 1
        answered = json.loads(of[kind][at])
        if answered.get("next_page"):
            answered["next_page"] = f"after-{at}"
        return said(answered)

    with serving(answer) as api:
        client = Client(api.url, PROVIDED[form], KEY, list[float]().append)  # type: ignore[index]
        found = [
            file
            for each in listings(form, range(FIRST, FIRST + 20), "model")  # type: ignore[arg-type]
            for file in pages(each, client.ask)
        ]
    got, expected = read(provider, found, {}), read(provider, made, {})
    assert [(one.day, one.tokens, one.amount) for one in got.lines] == [
        (one.day, one.tokens, one.amount) for one in expected.lines
    ]


@pytest.mark.parametrize(
    ("url", "why"),
    [("http://llm.example.com", "in the clear"), ("llm.example.com", "https://"), ("ftp://a", "https://")],
)
def test_no_key_goes_to_an_address_in_the_clear(url: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Client(url, PROVIDED["litellm"], KEY, list[float]().append)


def test_a_key_comes_from_a_file_or_a_variable_and_a_mistake_does_not_show_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    of = PROVIDED["anthropic"]
    assert key_of(f"${{file:{tmp_path}/key}}", of, {}) == KEY
    assert key_of("${MINE}", of, {"MINE": KEY}) == key_of("${ENV:MINE}", of, {"MINE": KEY}) == KEY
    assert key_of(None, of, {"ANTHROPIC_ADMIN_KEY": KEY}) == KEY
    for given, environ in (
        (KEY, {}),
        (None, {}),
        ("${MINE}", {"MINE": f"{KEY} {KEY}"}),
        (f"${{file:{tmp_path}/none}}", {}),
        (f"${{file:{tmp_path}}}", {}),
    ):
        with pytest.raises(UsageError) as error:
            key_of(given, of, environ)
        assert KEY not in str(error.value)


class House:
    """A directory with a ledger, and the command in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        ledger = open_ledger(f"sqlite:///{directory}/ledger.db", journals=())
        ledger.append([row(line("claude-sonnet-5", "0.002", input=1000, output=10), at=FIRST * DAY)])
        ledger.close()

    def said(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        known = {"HOME": str(self.directory), "PATH": os.environ["PATH"], **environ}
        command = [sys.executable, "-m", "acp_proxy", "reconcile", *words]
        command += ["--ledger", str(self.directory / "ledger.db")]
        return subprocess.run(command, env=known, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_the_command_says_the_same_of_an_api_as_of_its_files(house: House, tmp_path: Path) -> None:
    for file in anthropic(CALLS):
        (tmp_path / file.name).write_bytes(file.content)
    files = [str(tmp_path / file.name) for file in anthropic(CALLS)]
    with serving(paged(data_of(anthropic(CALLS)))) as api:
        days = ("--since", date_of(FIRST), "--until", date_of(FIRST + 20))
        of_api = house.said("anthropic", "--api", "--url", api.url, *days, ANTHROPIC_ADMIN_KEY=KEY)
    assert (of_api.returncode, of_api.stderr) == (0, "")
    assert of_api.stdout == house.said("anthropic", *files).stdout
    assert KEY not in of_api.stdout
    assert len(api.seen) == 6


def test_a_mistake_with_an_api_is_one_line(house: House) -> None:
    for words, expected in (
        (("anthropic", "--api"), "--api: expected --since with the first day of the bill"),
        (("csv", "--api", "--since", "2026-11"), "--api: expected one of anthropic, openai, litellm, not csv"),
        (("litellm", "--api", "--since", "2026-11"), "--api: expected --url with the address of your litellm"),
        (("anthropic", "--api", "--since", "2026-11"), "--api: expected the key in ANTHROPIC_ADMIN_KEY, or --key"),
        (("anthropic", "--api", "a.json", "--since", "2026-11"), "--api: expected no files and no --column"),
        (("anthropic", "--since", "2026-11", "a.json"), "--since: expected --api beside it"),
        (("anthropic", "--api", "--since", "2026-11", "--key", KEY), "--key: expected ${NAME} or ${file:PATH}"),
    ):
        answer = house.said(*words)
        assert (answer.returncode, answer.stdout) == (2, "")
        assert answer.stderr.startswith(f"acp-proxy: {expected}")
        assert answer.stderr.count("\n") == 1
        assert KEY not in answer.stderr


def test_days_that_were_not_asked_for_are_no_answer(house: House) -> None:
    with serving(paged(data_of(anthropic(CALLS)))) as api:
        days = ("--since", date_of(FIRST + 1), "--until", date_of(FIRST + 20))
        answer = house.said("anthropic", "--api", "--url", api.url, *days, ANTHROPIC_ADMIN_KEY=KEY)
    assert (answer.returncode, answer.stderr) == (
        2,
        f"acp-proxy: anthropic: expected an answer about {date_of(FIRST + 1)} to {date_of(FIRST + 19)}, "
        f"not {date_of(FIRST)}\n",
    )
