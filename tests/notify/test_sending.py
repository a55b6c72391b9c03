"""One attempt at a time: what the status of its answer means, and what is told of it."""

from __future__ import annotations

import httpx2
import pytest

from acp_proxy.notify.destinations import destination
from acp_proxy.notify.sending import Sender, _words
from tests.ledger.rows import NOON
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


@pytest.mark.parametrize(("said", "seconds"), [("inf", 3600), ("-inf", 0), ("nan", 0)])
async def test_a_wait_that_is_hardly_a_number_is_a_length_of_time_all_the_same(said: str, seconds: float) -> None:
    async with receiving(answer(503, f"Retry-After: {said}")) as receiver:
        sender = Sender(lambda: NOON)
        outcome = await sender.send(destination(channel(receiver.url), "default"), notice())
        await sender.aclose()
    assert (outcome.result, outcome.wait) == ("retried", seconds)


def test_what_the_system_says_of_a_connection_is_told_without_its_number() -> None:
    assert _words(httpx2.ConnectError("[Errno -2] Name or service not known")) == "Name or service not known"
    assert _words(httpx2.ConnectError("All connection attempts failed")) == "All connection attempts failed"
    assert _words(httpx2.ReadError("anything")) == "ReadError"
    said = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)"
    assert _words(httpx2.ConnectError(said)) == "certificate verify failed: self-signed certificate"
