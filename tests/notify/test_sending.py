"""One attempt at a time: what the status of its answer means, and what is told of it."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator

import httpx2
import pytest

from acp_proxy.config.channels import Format
from acp_proxy.notify.destinations import destination
from acp_proxy.notify.formats import body
from acp_proxy.notify.posting import words
from acp_proxy.notify.sending import Sender
from harness.rows import NOON
from tests.notify.house import channel, notice
from tests.notify.receiver import answer, receiving


@pytest.mark.parametrize(
    ("status", "result", "error"),
    [
        (200, "sent", None),
        (204, "sent", None),
        (299, "sent", None),
        (300, "failed", "HTTP 300, a redirect, which is not followed"),
        (399, "failed", "HTTP 399, a redirect, which is not followed"),
        (400, "failed", "HTTP 400"),
        (499, "failed", "HTTP 499"),
        (500, "retried", "HTTP 500"),
        (599, "retried", "HTTP 599"),
    ],
)
async def test_a_status_says_whether_it_was_taken_and_whether_to_try_again(
    status: int, result: str, error: str | None
) -> None:
    async with receiving(answer(status)) as receiver:
        sender = Sender(lambda: NOON)
        outcome = await sender.send(destination(channel(receiver.url), "default"), notice())
        await sender.aclose()
    assert (outcome.result, outcome.error) == (result, error)


@pytest.mark.parametrize("format", ["slack", "teams", "discord"])
async def test_a_service_gets_its_own_format_without_our_marks(format: Format) -> None:
    async with receiving() as receiver:
        sender = Sender(lambda: NOON)
        outcome = await sender.send(destination(channel(receiver.url, format=format), "default"), notice())
        await sender.aclose()
    ((_, headers, content),) = receiver.requests
    assert (outcome.result, content) == ("sent", body(notice(), format))
    assert [name for name in headers if name.startswith("webhook-")] == []


async def test_an_address_that_no_machine_can_have_is_given_up() -> None:
    sender = Sender(lambda: NOON)
    outcome = await sender.send(destination(channel("https://1.2.3.999/verysecret"), "default"), notice())
    await sender.aclose()
    assert (outcome.result, outcome.error) == ("failed", "InvalidURL")


@pytest.mark.parametrize(("said", "seconds"), [("inf", 3600), ("-inf", 0), ("nan", 0)])
async def test_a_wait_that_is_hardly_a_number_is_a_length_of_time_all_the_same(said: str, seconds: float) -> None:
    async with receiving(answer(503, f"Retry-After: {said}")) as receiver:
        sender = Sender(lambda: NOON)
        outcome = await sender.send(destination(channel(receiver.url), "default"), notice())
        await sender.aclose()
    assert (outcome.result, outcome.wait) == ("retried", seconds)


@pytest.fixture
def nine_hours_ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("nine_hours_ahead")
async def test_a_date_without_a_zone_is_not_taken_for_one_of_this_machine() -> None:
    async with receiving(answer(503, "Retry-After: Sat, 21 Nov 2026 12:10:00 -0000")) as receiver:
        sender = Sender(lambda: NOON)
        outcome = await sender.send(destination(channel(receiver.url), "default"), notice())
        await sender.aclose()
    assert outcome.wait == 600


def test_what_the_system_says_of_a_connection_is_told_without_its_number() -> None:
    assert words(httpx2.ConnectError("[Errno -2] Name or service not known")) == "Name or service not known"
    assert words(httpx2.ConnectError("All connection attempts failed")) == "All connection attempts failed"
    assert words(httpx2.ReadError("anything")) == "ReadError"
    said = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)"
    assert words(httpx2.ConnectError(said)) == "certificate verify failed: self-signed certificate"


@pytest.mark.parametrize("cause", [socket.gaierror(8, "not known"), ssl.SSLError(1, "not verified")])
def test_a_number_that_is_none_of_the_systems_is_not_told_as_one_of_its_errors(cause: OSError) -> None:
    error = httpx2.ConnectError(str(cause))
    error.__cause__ = cause
    assert words(error) in str(cause)
