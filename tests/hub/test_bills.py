"""A hub that fetches the bills of providers: as hub.toml says, once for all hubs of a database."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.config.files import ConfigError
from acp_proxy.core.windows import DAY
from acp_proxy.doctor.bills import bill_troubles
from acp_proxy.hub.settings import load
from acp_proxy.ledger import captures, open_ledger
from acp_proxy.ledger.captures import Capture
from harness.daemons import until
from harness.rows import line, row
from tests.bills.made import Call
from tests.hub.process import hub
from tests.metrics.scrapes import configuration
from tests.reconcile.provider import KEY, Reply, daily, serving

PAGES = 2 * 2  # of usage and of costs, of ten days


def call_on(day: int) -> Call:
    return Call(day, tokens=(2000, 0, 0, 0, 20))


def settings(database: str, api: str, key: str = "${ADMIN_KEY}") -> str:
    return f'[database]\nurl = "{database}"\n[bills.anthropic]\nkey = "{key}"\nurl = "{api}"\ndays = 10\n'


def kept(database: str) -> list[Capture]:
    with closing(open_ledger(database, journals=())) as ledger:
        return captures.latest(ledger.tables.read, "default")


def is_kept_below(directory: Path, text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in directory.rglob("*") if path.is_file())


async def test_several_hubs_on_one_database_fetch_a_bill_once(url: str, tmp_path: Path) -> None:
    yesterday = time.time_ns() // DAY * DAY - DAY // 2
    with closing(open_ledger(url, journals=())) as ledger:
        ledger.append([row(line("claude-sonnet-5", "0.002", input=1000, output=10), at=yesterday)])
    homes = [tmp_path / name for name in ("one", "other")]
    with serving(daily(call_on)) as api:
        async with AsyncExitStack() as stack:
            for home in homes:
                home.mkdir()
            first = await stack.enter_async_context(hub(homes[0], settings(url, api.url), ADMIN_KEY=KEY))
            other = await stack.enter_async_context(
                hub(homes[1], settings(url, api.url), ready="hub at", ADMIN_KEY=KEY)
            )
            await asyncio.to_thread(until, lambda: kept(url), "the bill is kept")
            for process, _, _ in (first, other):
                process.send_signal(signal.SIGTERM)
                assert await asyncio.wait_for(process.wait(), 30) == 0
        assert len(api.seen) == PAGES
    (found,) = kept(url)
    assert (found.billed_tokens, found.seen_tokens) == (10 * 2020, 1010)
    assert not await asyncio.to_thread(is_kept_below, tmp_path, KEY)


async def test_what_fails_is_one_line_of_the_log_and_told_by_doctor_to_who_sees_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"sqlite:///{tmp_path}/ledger.db"

    def answer(path: str, query: Mapping[str, list[str]], number: int) -> Reply:
        return Reply(401)

    with serving(answer) as api:
        async with hub(tmp_path, settings(database, api.url), ADMIN_KEY=KEY) as (process, url, token):
            assert process.stderr
            said = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
            while "bills" not in said:
                said = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
            monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", token)

            def asked(now: int) -> list[tuple[str, str]]:
                with closing(open_ledger(url, journals=())) as ledger:
                    config = configuration(tmp_path, "")
                    return list(bill_troubles(config, ledger, {}, now))

            ((what, trouble),) = await asyncio.to_thread(asked, time.time_ns())
            ((_, later),) = await asyncio.to_thread(asked, time.time_ns() + 2 * DAY)
    refused = "127.0.0.1 refused the key (401): expected an admin key of the organisation"
    assert "event=bills.not_fetched" in said
    assert refused in said
    assert KEY not in said
    assert what == "bills: anthropic, never fetched"
    assert refused in trouble
    assert "again from" in trouble
    assert later.startswith("no acp-proxy serve or hub with [bills] seems to run; the last try said: ")


def test_a_key_in_the_file_itself_is_refused_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "hub.toml"
    file.write_text(settings("sqlite:////x.db", "https://api.example.com", KEY), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    said = str(caught.value)
    assert said == f"{file}:4: bills.anthropic.key: expected ${{NAME}} or ${{file:PATH}}: a key does not stand here"


def test_a_key_is_not_read_into_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "hub.toml"
    file.write_text(settings("sqlite:////x.db", "https://api.example.com"), encoding="utf-8")
    found = load(file, {"ADMIN_KEY": KEY})
    assert found.bills["anthropic"].key == "${ADMIN_KEY}"
    assert KEY not in repr(found)
    assert replace(found, bills={}).bills == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[bills.mistral]\nkey = "${X}"', ":1: bills.mistral: unknown key; [bills] has anthropic, openai and litellm"),
        ('[bills.openai]\nkey = "${X}"\ndays = 0', ":3: bills.openai.days: expected a number of days from 1 to 366"),
        (
            '[bills.openai]\nurl = "here"',
            ":2: bills.openai.url: expected the URL of an API, such as https://llm.example.com",
        ),
        ('[bills]\nkey = "${X}"', ":2: bills.key: unknown key; [bills] has anthropic, openai and litellm"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "hub.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file, {"X": KEY})
    assert str(caught.value).startswith(f"{file}{told}")
