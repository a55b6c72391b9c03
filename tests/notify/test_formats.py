"""What webhooks are sent: within the limits that their services document, and with hostile names made inert."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.config.channels import Format
from acp_proxy.core.budget import Standing
from acp_proxy.core.budget.requests import Wish
from acp_proxy.core.notice import (
    Notice,
    a_test,
    ledger_is,
    more_asked,
    plan_reached,
    refused,
    stopped,
    threshold_reached,
    unpriced,
)
from acp_proxy.core.plans import FULL, PlanState, PlanWindow
from acp_proxy.core.windows import DAY
from acp_proxy.notify import texts
from acp_proxy.notify.formats import body, signature
from harness.rows import ALICE, MINUTE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.holds import account

FORMATS: tuple[Format, ...] = ("json", "slack", "teams", "discord")
STANDING = Standing(
    account(budget("30 USD", per="user", zone="Europe/Berlin")), spent=usd("24.1"), held=usd("1.5"), granted=usd("2")
)
REFUSED = refused(STANDING, ALICE, "opus", NOON)
DAILY = account(budget("5 USD"))

HOSTILE = (
    "<!channel> <@U123> <https://evil.example|click>",
    "@everyone @here <@&1> <#1>",
    "[click](https://evil.example) **bold** _i_ `code` ~~s~~ ||spoiler|| > # - 1.",
    "{{DATE(2026-01-01T00:00:00Z)}} <at>all</at> @{triggerBody()}",
    "\u202egnp.exe \u2066x\u2069 \u200b\u200e",
    "\x1b]8;;https://evil.example\x07x\x1b]8;;\x07 \x1b[31mred\r\nnew line\0",
    "x" * 10_000,
    "&" * 200,
    "🜏" * 200,
    "\\" * 200,
)


def sent(notice: Notice, format: Format) -> Any:
    return json.loads(body(notice, format))


def named(name: str) -> Notice:
    """Everything in it that is a name is this one."""
    of = budget("30 USD", per="user", name=name)
    origin = replace(ALICE, user=name, team=name, project=name, agent=name)
    return refused(Standing(account(of, origin)), origin, name, NOON)


def texts_in(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for each in value.values() for text in texts_in(each)]
        case list():
            return [text for each in value for text in texts_in(each)]
    return []


PLAN = PlanState(
    "alice",
    "claude-agent-acp",
    PlanWindow("seven_day_opus", FULL * 91 // 100, "allowed_warning", NOON + 2 * DAY, None, NOON),
    NOON,
    0,
)


LINK = "https://hub.example.org/requests/r1"


def wished(why: str, link: str | None = LINK) -> Notice:
    wish = Wish("r1", "admin", "daily", "user", "bob", usd("5"), "USD", why)
    return more_asked("default", "bob", "blue", wish, link, NOON)


class TestWords:
    @pytest.mark.parametrize(
        ("notice", "title", "text"),
        [
            (
                threshold_reached(STANDING, 80, NOON),
                '80 % of budget "daily" (user alice) is used',
                "Used: $24.10 of $32.00, and running turns hold $1.50. It resets on 2026-11-22 at 00:00 Europe/Berlin.",
            ),
            (
                threshold_reached(Standing(account(budget("5 turns", "total", mode="warn")), 5), 100, NOON),
                '100 % of budget "daily" is used',
                "Used: 5 of 5 turns. It only warns: prompts go on. It does not reset.",
            ),
            (
                threshold_reached(Standing(account(budget("1000 tokens", "rolling:5h")), 1234), 100, NOON),
                '100 % of budget "daily" is used',
                "Used: 1,234 of 1,000 tokens. Further prompts will be refused. "
                "It is for the last 5h, and comes free as they pass.",
            ),
            (
                threshold_reached(Standing(account(budget("150 USD", "turn")), usd("150.126")), 100, NOON),
                '100 % of budget "daily" is used',
                "Used: $150.13 of $150.00. It is for each turn by itself.",
            ),
            (
                threshold_reached(Standing(account(budget("5 USD", "total")), usd("4.95123")), 99, NOON),
                '99 % of budget "daily" is used',
                "Used: $4.9512 of $5.00. It does not reset.",
            ),
            (
                threshold_reached(Standing(DAILY, usd("5")), 100, DAILY.bounds.end or 0),  # by a turn over midnight
                '100 % of budget "daily" is used',
                "Used: $5.00 of $5.00. It was reset on 2026-11-22 at 00:00 UTC.",
            ),
            (
                stopped(Standing(DAILY, usd("5")), ALICE, "opus", (DAILY.bounds.end or 0) + MINUTE, "cancel"),
                'An agent was told to stop: budget "daily" is used up',
                "It was a turn of alice (team core, project web) with claude-agent-acp. Used: $5.00 of $5.00. "
                "It was reset on 2026-11-22 at 00:00 UTC.",
            ),
            (
                wished("the release"),
                'bob asks for more of budget "daily" (user bob)',
                "bob (team blue) asks for $5.00: the release. acp-proxy budget approve or deny r1 decides.",
            ),
            (
                REFUSED,
                'Refused: budget "daily" (user alice) has too little left',
                "A prompt of alice (team core, project web) to claude-agent-acp was refused. Used: $24.10 of $32.00, "
                "and running turns hold $1.50. It resets on 2026-11-22 at 00:00 Europe/Berlin. "
                "Further refusals of this user in this window are not reported.",
            ),
            (
                refused(STANDING, replace(ALICE, team=None, project=None), "x", NOON, unpriced=True),
                'Refused for want of a price: budget "daily" (user alice)',
                'A prompt of alice to claude-agent-acp was refused: model "x" has no known price, and this budget '
                "allows no such model. Further refusals of this user in this window are not reported.",
            ),
            (
                stopped(Standing(account(budget("1 USD", "total")), usd("1.25")), ALICE, "opus", NOON, "cancel"),
                'An agent was told to stop: budget "daily" is used up',
                "It was a turn of alice (team core, project web) with claude-agent-acp. Used: $1.25 of $1.00. It does "
                "not reset.",
            ),
            (
                stopped(Standing(account(budget("1 turns", "session")), 2), ALICE, None, NOON, "deny_next_tool"),
                'Tools were not permitted: budget "daily" is used up',
                "It was a turn of alice (team core, project web) with claude-agent-acp. Used: 2 of 1 turns. It is for "
                "one session.",
            ),
            (
                next(unpriced(ALICE, row(line(None, cost=None)).entry)),
                "No price is known for a model without a name",
                "It was used in a turn of alice (team core, project web) with claude-agent-acp. Its tokens are "
                "counted, their cost is not, and no budget of money counts them. Which model the agent means can be "
                "said under its name in the configuration: [aliases].",
            ),
            (
                next(unpriced(ALICE, row(line("my-model", cost=None)).entry)),
                'No price is known for model "my-model"',
                "It was used in a turn of alice (team core, project web) with claude-agent-acp. Its tokens are "
                "counted, their cost is not, and no budget of money counts them. A price can be set in the "
                "configuration: [prices].",
            ),
            (
                plan_reached("default", PLAN, 90),
                "90 % of a plan's window (week (opus)) is reached",
                "It is the plan of alice with claude-agent-acp. It resets on 2026-11-23 at 12:00 UTC.",
            ),
            (
                ledger_is("away", "default", "laptop", NOON, NOON),
                "The ledger is out of reach",
                "acp-proxy serve on laptop gets no answer since 2026-11-21 at 12:00 UTC. Proxies keep what they meter "
                "until it is back; budgets do what on_unavailable says.",
            ),
            (
                ledger_is("back", "default", "laptop", NOON, NOON),
                "The ledger answers again",
                "acp-proxy serve on laptop can read it since 2026-11-21 at 12:00 UTC.",
            ),
        ],
    )
    def test_each_says_what_happened_to_whom_and_until_when(self, notice: Notice, title: str, text: str) -> None:
        assert (texts.title(notice), texts.text(notice)) == (title, text)

    def test_a_time_zone_that_this_machine_does_not_know_is_no_reason_to_be_silent(self) -> None:
        assert "2026-11-21 at 23:00 UTC" in texts.text(replace(REFUSED, zone="Mars/Olympus"))

    @pytest.mark.parametrize(("length", "shown"), [(80, "x" * 80), (81, "x" * 79 + "…")])
    def test_a_name_is_cut_where_it_is_longer_than_fits(self, length: int, shown: str) -> None:
        assert f'"{shown}"' in texts.title(named("x" * length))

    @pytest.mark.parametrize("name", HOSTILE)
    def test_names_are_on_one_line_and_short(self, name: str) -> None:
        (of_a_model,) = unpriced(ALICE, row(line(name, cost=None)).entry)
        of_a_machine = [ledger_is("away", "default", name, NOON, NOON), ledger_is("back", "default", name, NOON, NOON)]
        of_a_plan = plan_reached("default", replace(PLAN, user=name, told=replace(PLAN.told, window=name)), 90)
        for notice in (named(name), of_a_model, of_a_plan, *of_a_machine, a_test("default", name, NOON, "1")):
            for text in (texts.title(notice), texts.text(notice)):
                assert text.isprintable()
                assert len(text) < 1000

    def test_a_notice_of_a_later_version_that_says_less_is_still_told(self) -> None:
        for kind in ("threshold", "refusal", "stop", "unpriced", "ledger", "plan"):
            bare = Notice("id", kind, "default", NOON)
            assert texts.title(bare)
            assert all(body(bare, each) for each in FORMATS)


class TestJson:
    def test_it_has_everything_as_exact_text(self) -> None:
        assert sent(REFUSED, "json") == {
            "id": REFUSED.id,
            "kind": "refusal",
            "detail": "used_up",
            "at": "2026-11-21T12:00:00Z",
            "title": texts.title(REFUSED),
            "text": texts.text(REFUSED),
            "organisation": "default",
            "budget": "daily",
            "layer": "user",
            "per": "user",
            "value": "alice",
            "threshold": None,
            "unit": "USD",
            "limit": "32",
            "spent": "24.1",
            "held": "1.5",
            "left": "6.4",
            "mode": "enforce",
            "window": "day",
            "timezone": "Europe/Berlin",
            "resets_at": "2026-11-21T23:00:00Z",
            "user": "alice",
            "team": "core",
            "project": "web",
            "agent": "claude-agent-acp",
            "model": "opus",
            "host": None,
            "request": None,
            "amount": None,
            "reason": None,
            "link": None,
        }

    def test_a_signature_is_that_of_the_standards_own_example(self) -> None:
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        made = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
        assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_each_service_shows_the_whole_of_what_is_told() -> None:
    title, text = texts.title(REFUSED), texts.text(REFUSED)
    slack = sent(REFUSED, "slack")
    assert slack["text"] == f"{title}. {text}"
    assert [(block["type"], block["text"]["text"]) for block in slack["blocks"]] == [
        ("header", title),
        ("section", text),
    ]
    (attachment,) = sent(REFUSED, "teams")["attachments"]
    runs = [run for block in attachment["content"]["body"] for run in block["inlines"]]
    assert [run["text"] for run in runs] == [title, text]
    assert re.sub(r"\\(.)", r"\1", sent(REFUSED, "discord")["content"]) == f"**{title}**\n{text}"


class TestSlack:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_nothing_is_markup_and_all_fits(self, name: str) -> None:
        message = sent(named(name), "slack")
        for text in texts_in(message):
            assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", text)
        header, section = message["blocks"]
        assert [block["text"]["type"] for block in message["blocks"]] == ["plain_text", "plain_text"]
        assert 0 < len(header["text"]["text"]) <= 150
        assert 0 < len(section["text"]["text"]) <= 3000

    def test_what_is_longer_than_fits_is_cut_and_says_so(self) -> None:
        """Escaped it is five times as long."""
        header, _ = sent(named("&" * 80), "slack")["blocks"]
        said = header["text"]["text"]
        assert len(said) in range(150 - len("&amp;"), 151)
        assert texts.title(named("&" * 80)).startswith(said.removesuffix("…").replace("&amp;", "&"))
        assert said.endswith("&amp;…")

    def test_links_are_not_unfolded(self) -> None:
        message = sent(REFUSED, "slack")
        assert not message["unfurl_links"]
        assert not message["unfurl_media"]


class TestTeams:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_names_are_only_in_runs_of_text_which_know_no_markdown(self, name: str) -> None:
        message = sent(named(name), "teams")
        (attachment,) = message["attachments"]
        card = attachment["content"]
        assert (message["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
        assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
        for block in card["body"]:
            assert block["type"] == "RichTextBlock"
            assert [run["type"] for run in block["inlines"]] == ["TextRun"]
        assert len(body(named(name), "teams")) < 28_000
        assert "msteams" not in card  # where mentions would stand


class TestDiscord:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_nobody_is_mentioned_nothing_is_markup_and_all_fits(self, name: str) -> None:
        message = sent(named(name), "discord")
        assert message["allowed_mentions"] == {"parse": []}
        title, text = message["content"].split("\n")
        unescaped = re.sub(r"\\[^A-Za-z0-9\s]", "", title.removeprefix("**").removesuffix("**") + text)
        assert not re.search(r"[\\*_~`|<>\[\]#@:]", unescaped)
        assert len(message["content"].encode("utf-16-le")) // 2 <= 2000


@settings(max_examples=60, deadline=None)
@given(name=st.text(max_size=300), format=st.sampled_from(FORMATS))
def test_any_name_at_all_makes_valid_json(name: str, format: Format) -> None:
    assert orjson.loads(body(named(name), format))


def test_programs_get_tokens_as_they_are_and_money_in_units() -> None:
    tokens = threshold_reached(Standing(account(budget("1000 tokens")), 800, held=50), 80, NOON)
    told = [sent(notice, "json") for notice in (tokens, threshold_reached(STANDING, 80, NOON))]
    assert [[each[name] for name in ("limit", "spent", "held", "left")] for each in told] == [
        ["1000", "800", "50", "150"],
        ["32", "24.1", "1.5", "6.4"],
    ]


def test_discord_makes_no_pictures_of_links() -> None:
    assert sent(REFUSED, "discord")["flags"] == 4


def test_a_request_leads_to_where_it_is_decided_whatever_its_reason_says() -> None:
    """The hub's own address is the only link."""
    for why in (*HOSTILE, "https://evil.example"):
        assert sent(wished(why), "json")["link"] == LINK
        (button,) = sent(wished(why), "slack")["blocks"][-1]["elements"]
        assert button["url"] == LINK
        card = sent(wished(why), "teams")["attachments"][0]["content"]
        assert [action["url"] for action in card["actions"]] == [LINK]
        content = sent(wished(why), "discord")["content"]
        assert content.endswith(f"\n<{LINK}>")
        assert len(content.encode("utf-16-le")) // 2 <= 2000
        assert "https://evil" not in content


def test_a_request_at_a_hub_without_an_address_has_no_link() -> None:
    assert len(sent(wished("why", None), "slack")["blocks"]) == 2
    assert "actions" not in sent(wished("why", None), "teams")["attachments"][0]["content"]
    assert "<" not in sent(wished("why", None), "discord")["content"]
