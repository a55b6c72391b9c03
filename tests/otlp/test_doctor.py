"""`doctor` says of each signal whether its receiver takes it."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from pathlib import Path

from acp_proxy.doctor.telemetry import exporter_troubles, telemetry_troubles
from acp_proxy.ledger import open_ledger
from harness.ports import free_port
from harness.rows import MINUTE, row
from tests.metrics.scrapes import configuration
from tests.notify.receiver import answer, receiving
from tests.otlp.house import house


def found(directory: Path, text: str = "", **environ: str) -> list[tuple[str, str]]:
    return list(telemetry_troubles(configuration(directory, text), environ))


async def test_a_receiver_that_takes_it_is_named_and_one_that_does_not_with_what_it_says(tmp_path: Path) -> None:
    async with receiving(answer(200), answer(401)) as receiver:
        endpoint = f"http://127.0.0.1:{receiver.port}"
        said = await asyncio.to_thread(found, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_LOGS_EXPORTER="none")
        assert said == [("otlp: metrics to 127.0.0.1", ""), ("otlp: traces to 127.0.0.1", "HTTP 401")]
        assert [first for first, _, _ in receiver.requests] == [
            "POST /v1/metrics HTTP/1.1",
            "POST /v1/traces HTTP/1.1",
        ]


async def test_what_no_receiver_takes_and_who_sends_no_more_is_told(tmp_path: Path) -> None:
    async with receiving(*[answer(200), *[answer(503)] * 9]) as receiver, house(tmp_path, receiver) as at:
        await at.stream("metrics").round()
        at.append(row(at=at.clock()))
        await at.stream("traces").round()

        def told() -> str:
            with closing(open_ledger(at.config.ledger.url, journals=())) as ledger:
                ((what, trouble),) = exporter_troubles(at.config, ledger, at.clock())
            assert re.fullmatch(r"otlp: exporter \w+, at work \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", what)
            return trouble

        assert told() == ""
        at.clock.now += 15 * MINUTE
        await at.stream("traces").round()
        assert told().startswith("1 span or log record, the oldest from ")
        assert told().endswith(", not taken yet")
        at.clock.now += 11 * MINUTE
        assert told().startswith("no acp-proxy serve or hub seems to send any more; 1 span or log record")


def test_one_that_is_not_there_is_told(tmp_path: Path) -> None:
    text = f'[otlp]\nmetrics_endpoint = "http://127.0.0.1:{free_port()}/in"\n'
    assert found(tmp_path, text) == [("otlp: metrics to 127.0.0.1", "Connection refused")]


def test_where_nothing_is_sent_nothing_is_said(tmp_path: Path) -> None:
    assert found(tmp_path) == found(tmp_path, OTEL_SERVICE_NAME="x") == []


def test_settings_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    ((what, trouble),) = found(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="localhost")
    assert (what, trouble.partition(", such")[0]) == (
        "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT: expected the URL of a collector",
    )
