"""Notices from a real ledger to real receivers on loopback: once, again after a failure, and no secret in a log."""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
import socket
import threading
from contextlib import suppress
from email.utils import formatdate
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec.structs import replace

from acp_proxy.config.channels import Secret
from acp_proxy.core.notice import ledger_is
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import LedgerUnavailableError
from acp_proxy.notify.destinations import destinations
from acp_proxy.notify.notifier import Notifier
from harness.ports import free_port
from harness.rows import NOON
from tests.ledger.warned import Warnings
from tests.notify.house import SECONDS, Clock, channel, desk, notice
from tests.notify.receiver import DRIP, HANG, answer, receiving

SOON, LATER = 37.0, 5 * 3600.0  # seconds: after the first pause, and after any


async def test_a_notice_is_posted_once(tmp_path: Path) -> None:
    async with receiving() as receiver, desk(tmp_path, channel(receiver.url)) as made:
        made.note(notice())
        await made.round()
        await made.round()
        ((first, headers, _),) = receiver.requests
        assert first == "POST /hooks/verysecret HTTP/1.1"
        assert headers["content-type"] == "application/json"
        assert headers["user-agent"].startswith("acp-proxy/")
        assert receiver.bodies[0]["title"] == '80 % of budget "daily" is used'
        assert made.counts() == {"sent": 1}


async def test_what_a_killed_one_had_claimed_another_sends_when_the_claim_has_run_out(tmp_path: Path) -> None:
    async with receiving(HANG) as receiver:
        to = channel(receiver.url)
        async with desk(tmp_path, to) as killed, desk(tmp_path, to) as other:
            killed.note(notice())
            sending = asyncio.create_task(killed.round())
            await receiver.until(1)
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
            await other.round()
            assert len(receiver.requests) == 1
            other.clock.passes(61)
            await other.round()
            assert [body["id"] for body in receiver.bodies] == [notice().id] * 2
            assert other.counts() == {"sent": 1}


async def test_channels_of_one_name_and_different_places_both_get_it(tmp_path: Path) -> None:
    async with (
        receiving() as one,
        receiving() as other,
        desk(tmp_path, channel(one.url), channel(other.url, layer="admin")) as made,
    ):
        made.note(notice())
        await made.round()
        assert (len(one.requests), len(other.requests)) == (1, 1)
        assert made.counts() == {"sent": 2}


async def test_a_channel_gets_only_what_it_wants(tmp_path: Path) -> None:
    async with receiving() as receiver:
        wants = channel(receiver.url, kinds=("threshold",), budgets=("web-*",))
        async with desk(tmp_path, wants) as made:
            made.note(notice(1, name="web-core"), notice(2, name="core"), replace(notice(3), kind="stop"))
            await made.round()
            assert [body["threshold"] for body in receiver.bodies] == [1]


@pytest.mark.parametrize(
    "trouble", [answer(500), answer(503), answer(408), answer(425), answer(429), b"", b"nonsense\r\n\r\n"]
)
async def test_what_may_pass_is_tried_again_after_a_pause(tmp_path: Path, trouble: bytes) -> None:
    """A receiver that fails twice; an empty answer closes the connection."""
    failing = trouble or b"\r\n"
    async with receiving(failing, failing) as receiver, desk(tmp_path, channel(receiver.url)) as made:
        made.note(notice())
        await made.round()
        await made.round()
        assert len(receiver.requests) == 1
        made.clock.passes(SOON)
        await made.round()
        made.clock.passes(SOON)
        await made.round()
        assert len(receiver.requests) == 2  # the pause doubles
        made.clock.passes(SOON)
        await made.round()
        assert len(receiver.requests) == 3
        assert made.counts() == {"retried": 2, "sent": 1}


@pytest.mark.parametrize("ending", [HANG, DRIP], ids=["hangs", "drips"])
async def test_a_receiver_that_hangs_is_tried_again(tmp_path: Path, ending: bytes) -> None:
    async with receiving(ending) as receiver:
        to = channel(receiver.url)
        async with desk(tmp_path, to, timeout=0.2) as hasty, desk(tmp_path, to) as made:
            made.note(notice())
            await hasty.round()
            assert hasty.warnings.told[0][1]["error"] == "no answer within 0.2 s"
            made.clock.passes(SOON)
            await made.round()
            assert made.counts() == {"retried": 1, "sent": 1}


async def test_nobody_there_is_tried_again(tmp_path: Path) -> None:
    async with desk(tmp_path, channel(f"http://127.0.0.1:{free_port()}/")) as made:
        made.note(notice())
        await made.round()
        assert made.counts() == {"retried": 1}
        told = {"channel": "team", "host": "127.0.0.1", "error": "Connection refused", "tries": 1}
        assert made.warnings.told == [("notify.retried", told)]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 301, 302, 307, 308])
async def test_what_will_not_pass_is_given_up(tmp_path: Path, status: int) -> None:
    async with receiving() as elsewhere:
        moved = answer(status, f"Location: {elsewhere.url}")
        async with receiving(moved) as receiver, desk(tmp_path, channel(receiver.url)) as made:
            made.note(notice())
            await made.round()
            made.clock.passes(LATER)
            await made.round()
            assert len(receiver.requests) == 1
            assert elsewhere.requests == []  # no redirect is followed
            assert made.warnings.events == ["notify.failed"]
            assert made.counts() == {"failed": 1}


async def test_after_one_that_was_sent_the_next_failure_pauses_as_the_first_did(tmp_path: Path) -> None:
    async with (
        receiving(answer(500), answer(200), answer(500)) as receiver,
        desk(tmp_path, channel(receiver.url)) as made,
    ):
        for number in (1, 2):
            made.note(notice(number))
            await made.round()
            made.clock.passes(SOON)
            await made.round()
            assert len(receiver.requests) == 2 * number


async def test_the_pause_after_a_failure_holds_for_whoever_else_serves_the_ledger(tmp_path: Path) -> None:
    async with (
        receiving(answer(500)) as receiver,
        desk(tmp_path, channel(receiver.url)) as made,
        desk(tmp_path, channel(receiver.url)) as other,
    ):
        made.note(notice())
        await made.round()
        other.clock.passes(20)
        await other.round()
        assert len(receiver.requests) == 1
        other.clock.passes(SOON - 20)
        await other.round()
        assert other.counts() == {"retried": 1, "sent": 1}


async def test_it_is_given_up_after_eight_tries_within_little_more_than_an_hour(tmp_path: Path) -> None:
    async with receiving(*[answer(500)] * 20) as receiver, desk(tmp_path, channel(receiver.url)) as made:
        made.note(notice())
        for _ in range(90 * 4):
            await made.round()
            made.clock.passes(15)
        assert len(receiver.requests) == 8
        assert made.counts() == {"failed": 1, "retried": 7}


async def test_a_webhook_that_has_failed_for_long_is_tried_about_every_hour(tmp_path: Path) -> None:
    async with receiving(*[answer(500)] * 20) as receiver, desk(tmp_path, channel(receiver.url)) as made:
        made.note(notice(1), notice(2))
        for _ in range(12):
            await made.round()
            made.clock.passes(1.2 * 3600)
        assert len(receiver.requests) == 12


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("600", 600),
        ("599.5", 599.5),
        (formatdate(NOON // SECONDS + 600, usegmt=True), 600),
        ("Sat, 21 Nov 2026 14:10:00 +0200", 600),
        ("Sat, 21 Nov 2026 12:10:00 -0000", 600),
        ("Sun, 22 Nov 2026 12:00:00 GMT", 3600),
        ("999999999999", 3600),
        ("1e999", 3600),
        ("-5", 36),
        ("nan", 36),
        ("in a moment", 36),
        ("Sat, 21 Nov 2026 12:00:00 +99999999999999999999", 36),
        (formatdate(NOON // SECONDS - 600, usegmt=True), 36),
    ],
)
async def test_it_waits_as_long_as_the_server_asks_for_and_not_for_ever(
    tmp_path: Path, said: str, seconds: float
) -> None:
    busy = answer(429, f"Retry-After: {said}")
    async with receiving(busy) as receiver, desk(tmp_path, channel(receiver.url)) as made:
        made.note(notice(1), notice(2))
        await made.round()
        made.clock.passes(seconds - 13 if seconds == 36 else seconds - 1)
        await made.round()
        assert len(receiver.requests) == 1  # the other notice waits as well
        made.clock.passes(14)
        await made.round()
        assert len(receiver.requests) == 3


async def test_a_channel_in_trouble_keeps_no_other_waiting(tmp_path: Path) -> None:
    async with (
        receiving(HANG) as hanging,
        receiving() as receiver,
        desk(tmp_path, channel(hanging.url, name="hangs"), channel(receiver.url)) as made,
    ):
        made.note(notice())
        sending = asyncio.create_task(made.round())
        await hanging.until(1)
        await receiver.until(1)
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


async def test_a_flood_is_sent_five_a_round(tmp_path: Path) -> None:
    async with receiving() as receiver, desk(tmp_path, channel(receiver.url)) as made:
        made.note(*(notice(number, NOON + number) for number in range(12)))
        await made.round()
        assert [body["threshold"] for body in receiver.bodies] == [0, 1, 2, 3, 4]
        await made.round()
        await made.round()
        assert len(receiver.requests) == 12


async def test_one_that_was_sent_is_not_sent_again_because_the_ledger_could_not_be_told(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    async with receiving() as receiver, desk(tmp_path, channel(receiver.url)) as made:
        made.note(notice())
        receiver.before_answer = lambda: away(ledger)
        await made.round()
        receiver.before_answer = None
        back(ledger)
        await made.round()
        await made.round()
        assert len(receiver.requests) == 1
        assert made.counts() == {"sent": 1}


def away(ledger: Path) -> None:
    """Out of reach, also for who has it open: its place is taken by a directory."""
    moved = ledger.with_name("moved")
    moved.mkdir()
    for file in ledger.parent.glob("ledger.db*"):
        file.rename(moved / file.name)
    ledger.mkdir()


def back(ledger: Path) -> None:
    moved = ledger.with_name("moved")
    ledger.rmdir()
    for file in moved.iterdir():
        file.rename(ledger.parent / file.name)
    moved.rmdir()


class TestOutages:
    async def test_a_long_one_is_told_once_and_so_is_its_end(self, tmp_path: Path) -> None:
        async with receiving() as receiver, desk(tmp_path, channel(receiver.url)) as made:
            await made.round()
            away(tmp_path / "ledger.db")
            for _ in range(12):
                await made.round()
                made.clock.passes(5)
            back(tmp_path / "ledger.db")
            for _ in range(3):
                await made.round()
                made.clock.passes(5)
            assert [(body["kind"], body["detail"], body["host"]) for body in receiver.bodies] == [
                ("ledger", "away", "laptop"),
                ("ledger", "back", "laptop"),
            ]
            assert receiver.bodies[0]["at"] == "2026-11-21T12:00:00Z"
            assert str(tmp_path) not in str(receiver.bodies)
            assert made.counts() == {"sent": 2}
            assert made.warnings.told == []  # not that notices wait, which is for a ledger that answers

    async def test_it_is_told_on_which_machine(self) -> None:
        def away() -> NoReturn:
            raise LedgerUnavailableError("away")

        clock = Clock()
        async with receiving() as receiver:
            to = destinations([channel(receiver.url)], "default")
            notifier = Notifier(to, "default", away, Warnings(), clock=clock)
            await notifier.watch()
            clock.passes(21)
            await notifier.watch()
            await notifier.guarded(notifier.deliveries[0].round)
            await notifier.aclose()
            assert [body["host"] for body in receiver.bodies] == [socket.gethostname()]

    async def test_a_short_one_is_not_told(self, tmp_path: Path) -> None:
        async with receiving() as receiver, desk(tmp_path, channel(receiver.url)) as made:
            for _ in range(3):
                await made.round()
                away(tmp_path / "ledger.db")
                await made.round()
                made.clock.passes(15)
                await made.round()
                back(tmp_path / "ledger.db")
            await made.round()
            assert receiver.requests == []

    async def test_who_does_not_want_to_know_is_not_told(self, tmp_path: Path) -> None:
        async with receiving() as receiver, desk(tmp_path, channel(receiver.url, kinds=("refusal",))) as made:
            (tmp_path / "ledger.db").mkdir()
            await made.round()
            made.clock.passes(30)
            await made.round()
            await made.round()
            assert receiver.requests == []

    async def test_it_is_told_when_the_webhook_can_be_reached_again(self, tmp_path: Path) -> None:
        async with receiving(answer(500)) as receiver, desk(tmp_path, channel(receiver.url)) as made:
            (tmp_path / "ledger.db").mkdir()
            for _ in range(15):
                await made.round()
                made.clock.passes(5)
            assert [body["detail"] for body in receiver.bodies] == ["away", "away"]
            (tmp_path / "ledger.db").rmdir()
            for _ in range(9):
                await made.round()
                made.clock.passes(5)
            assert [body["detail"] for body in receiver.bodies] == ["away", "away", "back"]
            assert made.counts() == {"retried": 1, "sent": 2}

    async def test_who_cannot_be_told_of_one_is_tried_after_a_pause_and_then_told_all_at_once(
        self, tmp_path: Path
    ) -> None:
        async with receiving(answer(500)) as receiver, desk(tmp_path, channel(receiver.url)) as made:
            (tmp_path / "ledger.db").mkdir()
            while not receiver.requests:
                await made.round()
                made.clock.passes(5)
            (tmp_path / "ledger.db").rmdir()
            for _ in range(3):
                await made.round()
                made.clock.passes(5)
            assert len(receiver.requests) == 1
            made.clock.passes(SOON)
            await made.round()
            assert [body["detail"] for body in receiver.bodies] == ["away", "away", "back"]

    async def test_who_cannot_be_told_of_one_is_spared_what_the_ledger_has_noted(self, tmp_path: Path) -> None:
        async with receiving(answer(500)) as receiver, desk(tmp_path, channel(receiver.url)) as made:
            made.note(notice())
            made.notifier.deliveries[0].tell(ledger_is("back", "default", "laptop", NOON, NOON))
            await made.round()
            assert [body["kind"] for body in receiver.bodies] == ["ledger"]
            made.clock.passes(SOON)
            await made.round()
            assert [body["kind"] for body in receiver.bodies] == ["ledger", "ledger", "threshold"]

    async def test_of_very_many_the_last_are_told(self, tmp_path: Path) -> None:
        async with receiving() as receiver, desk(tmp_path, channel(receiver.url)) as made:
            for number in range(30):
                at = NOON + number * SECONDS
                made.notifier.deliveries[0].tell(ledger_is("back", "default", "laptop", at, at))
            for _ in range(6):
                await made.round()
            assert [body["at"] for body in receiver.bodies] == [
                f"2026-11-21T12:00:{number}Z" for number in range(10, 30)
            ]

    async def test_who_cannot_be_told_of_one_is_tried_eight_times(self, tmp_path: Path) -> None:
        async with receiving(*[answer(500)] * 20) as receiver, desk(tmp_path, channel(receiver.url)) as made:
            (tmp_path / "ledger.db").mkdir()
            for _ in range(90 * 4):
                await made.round()
                made.clock.passes(15)
            assert len(receiver.requests) == 8
            assert made.warnings.events.count("notify.failed") == 1


class TestSecrets:
    async def test_json_is_signed_as_standard_webhooks_are(self, tmp_path: Path) -> None:
        for secret, key in (("plain text", b"plain text"), ("whsec_a2V5IGluIGJhc2U2NA==", b"key in base64")):
            directory = tmp_path / secret
            directory.mkdir()
            async with receiving() as receiver:
                async with desk(directory, channel(receiver.url, secret=Secret(secret))) as made:
                    made.note(notice())
                    await made.round()
                ((_, headers, body),) = receiver.requests
                assert headers["webhook-id"] == notice().id
                assert headers["webhook-timestamp"] == str(NOON // SECONDS)
                signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
                expected = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
                assert headers["webhook-signature"] == f"v1,{expected}"

    @pytest.mark.parametrize("trouble", [answer(500), answer(404), answer(302, "Location: /x"), b"nonsense\r\n\r\n"])
    async def test_no_log_at_any_level_shows_a_url_or_a_secret(
        self, tmp_path: Path, trouble: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        async with receiving(trouble) as receiver:
            to = channel(receiver.url, secret=Secret("whsec_YWxzb3NlY3JldA=="))
            async with desk(tmp_path, to) as made:
                made.note(notice())
                await made.round()
                made.clock.passes(LATER)
                await made.round()
                told = f"{caplog.text} {made.warnings.told} {vars(made.notifier)} {vars(made.notifier.deliveries[0])}"
        assert made.warnings.told[0][1]["host"] == "127.0.0.1"
        for shown in ("verysecret", "YWxzb3NlY3JldA", "alsosecret"):
            assert shown not in told


async def test_it_runs_until_it_is_cancelled_and_then_ends_at_once_with_its_thread(tmp_path: Path) -> None:
    async with receiving(HANG) as receiver, desk(tmp_path, channel(receiver.url)) as made:
        made.note(notice())
        running = asyncio.create_task(made.notifier.run())
        await receiver.until(1)
        running.cancel()
        async with asyncio.timeout(15):
            with suppress(asyncio.CancelledError):
                await running
        assert running.cancelled()
        assert "acp-proxy notices" not in [thread.name for thread in threading.enumerate()]


async def test_a_fault_of_ours_ends_nothing_and_is_told_without_its_text() -> None:
    def broken() -> NoReturn:
        raise RuntimeError("https://hooks.example/verysecret")

    warnings = Warnings()
    notifier = Notifier(destinations([channel("http://127.0.0.1:9/")], "default"), "default", broken, warnings)
    await notifier.guarded(notifier.watch)
    await notifier.aclose()
    assert warnings.told == [("notify.broken", {"error": "RuntimeError"})]


async def test_what_is_a_day_old_is_not_sent(tmp_path: Path) -> None:
    async with receiving() as receiver, desk(tmp_path, channel(receiver.url)) as made:
        made.note(notice(at=NOON - DAY), notice(50))
        await made.round()
        assert [body["threshold"] for body in receiver.bodies] == [50]
