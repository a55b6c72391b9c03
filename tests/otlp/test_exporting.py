"""How an exporter gets on with receivers that are away, hang, refuse, or want to be left alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

from acp_proxy.otlp.outgoing import LEASE
from acp_proxy.otlp.stream import Stream
from harness.otlp import in_prometheus, resource_of
from harness.ports import free_port
from harness.rows import MINUTE, line, row
from tests.notify.receiver import DRIP, HANG, Receiver, answer, receiving
from tests.otlp.house import House, house


def tokens(request: bytes) -> float:
    return sum(value for (name, _), value in in_prometheus(request).items() if name == "acp_proxy_tokens_total")


async def one(stream: Stream) -> float:
    return await stream.round()


async def test_metrics_are_posted_as_the_protocol_has_it(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        house(tmp_path, receiver, OTEL_EXPORTER_OTLP_HEADERS="api-key=one", OTEL_METRIC_EXPORT_INTERVAL="7000") as at,
    ):
        at.append(row(line(input=3)))
        assert await at.stream("metrics").round() == 7.0
        ((first, headers, body),) = receiver.requests
        assert first == "POST /v1/metrics HTTP/1.1"
        assert (headers["content-type"], headers["content-encoding"]) == ("application/x-protobuf", "gzip")
        assert headers["api-key"] == "one"
        assert tokens(body) == 3
        assert at.warnings.told == []


async def test_what_is_not_to_be_compressed_is_not(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver, OTEL_EXPORTER_OTLP_COMPRESSION="none") as at:
        at.append(row())
        await at.stream("metrics").round()
        _, headers, body = receiver.requests[0]
        assert "content-encoding" not in headers
        assert not body.startswith(b"\x1f\x8b")
        assert tokens(body) > 0


async def test_the_instance_is_the_same_after_a_restart_and_from_another_machine(tmp_path: Path) -> None:
    async with receiving() as receiver:
        for _ in range(3):
            async with house(tmp_path, receiver) as at:
                await at.stream("metrics").round()
        resources = [resource_of(body) for _, _, body in receiver.requests]
        assert len(resources) == 3
        assert resources[0]["service.instance.id"]
        assert resources[0] == resources[1] == resources[2]


async def test_of_two_exporters_one_sends_and_the_other_when_that_one_is_gone(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver) as second:
        async with house(tmp_path, receiver, clock=second.clock) as first:
            await first.stream("metrics").round()
            await second.stream("metrics").round()
            await first.stream("metrics").round()
            assert len(receiver.requests) == 2
        await second.stream("metrics").round()
        assert len(receiver.requests) == 3


async def test_one_that_was_killed_is_succeeded_after_a_while(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        house(tmp_path, receiver) as killed,
        house(tmp_path, receiver, clock=killed.clock) as other,
    ):
        await killed.stream("metrics").round()
        await other.stream("metrics").round()
        assert len(receiver.requests) == 1
        other.clock.now += LEASE + 1
        await other.stream("metrics").round()
        assert len(receiver.requests) == 2


async def pauses(at: House, rounds: int) -> list[float]:
    return [await at.stream("metrics").round() for _ in range(rounds)]


async def test_a_receiver_that_is_away_is_asked_less_and_less_and_told_of_once(tmp_path: Path) -> None:
    nobody = Receiver(port=free_port())
    async with house(tmp_path, nobody) as at:
        assert await pauses(at, 9) == [1, 2, 4, 8, 16, 32, 60, 60, 60]
        assert at.warnings.told == [
            ("otlp.not_sent", {"signal": "metrics", "host": "127.0.0.1", "error": "Connection refused"})
        ]


async def test_when_it_is_back_it_is_sent_how_things_are(tmp_path: Path) -> None:
    async with receiving(*[answer(503)] * 5) as receiver, house(tmp_path, receiver) as at:
        for number in range(5):
            at.append(row(line(input=1)))
            at.clock.now += MINUTE
            await at.stream("metrics").round()
            assert at.warnings.events == ["otlp.not_sent"], number
        assert await at.stream("metrics").round() == 60
        assert tokens(receiver.requests[-1][2]) == 5
        assert at.warnings.events == ["otlp.not_sent", "otlp.sent_again"]


async def test_one_that_wants_to_be_left_alone_is(tmp_path: Path) -> None:
    limited = [answer(429, "Retry-After: 300"), answer(503, "Retry-After: 7"), answer(503, "Retry-After: soon")]
    async with receiving(*limited) as receiver, house(tmp_path, receiver) as at:
        assert await pauses(at, 3) == [300, 7, 4]
        assert len(receiver.requests) == 3


async def test_one_that_hangs_or_drips_is_given_up_in_time(tmp_path: Path) -> None:
    async with receiving(HANG, DRIP) as receiver, house(tmp_path, receiver, OTEL_EXPORTER_OTLP_TIMEOUT="300") as at:
        async with asyncio.timeout(60):
            assert await pauses(at, 2) == [1, 2]
        assert [fields["error"] for _, fields in at.warnings.told] == ["no answer within 0.3 s"]


async def test_a_key_that_is_wrong_is_said_with_the_receivers_words_and_tried_again_in_a_minute(tmp_path: Path) -> None:
    async with receiving(answer(401), answer(302)) as receiver, house(tmp_path, receiver) as at:
        assert await pauses(at, 2) == [60, 60]
        assert [fields["error"] for _, fields in at.warnings.told] == ["HTTP 401", "HTTP 302"]


async def test_what_a_receiver_rejects_of_it_is_said_and_not_sent_again(tmp_path: Path) -> None:
    partly = b"\x0a\x0b\x08\x02\x12\x07too old"  # 2 data points, for this reason
    head = f"HTTP/1.1 200 X\r\nContent-Length: {len(partly)}\r\nContent-Type: application/x-protobuf\r\n\r\n"
    async with receiving(head.encode() + partly) as receiver, house(tmp_path, receiver) as at:
        assert await at.stream("metrics").round() == 60
        assert [fields["error"] for _, fields in at.warnings.told] == ["too old"]


async def test_without_its_ledger_it_says_so_to_the_receiver_and_in_the_log(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        at.append(row())
        await at.stream("metrics").round()
        path = tmp_path / "ledger.db"
        path.rename(tmp_path / "elsewhere.db")
        path.mkdir()
        await at.stream("metrics").round()
        await at.stream("metrics").round()
        samples = in_prometheus(receiver.requests[-1][2])
        assert samples["acp_proxy_ledger_up", frozenset()] == 0
        assert "acp_proxy_tokens_total" not in {name for name, _ in samples}
        assert at.warnings.events[0] == "otlp.not_sent"


async def test_a_signal_that_fails_ends_no_other(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver, OTEL_METRIC_EXPORT_INTERVAL="10") as at:

        async def broken() -> float:
            raise RuntimeError

        at.stream("traces").round = broken  # type: ignore[method-assign]
        running = asyncio.create_task(at.exporting.run())
        await receiver.until(3)
        running.cancel()
        assert at.warnings.wait("otlp.broken")
