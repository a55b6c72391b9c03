"""`doctor` says of each signal whether its receiver takes it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from acp_proxy.doctor.telemetry import telemetry_troubles
from harness.ports import free_port
from tests.metrics.scrapes import configuration
from tests.notify.receiver import answer, receiving


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
