"""A hub that exports: what its ledger has goes where hub.toml says, as from `serve`."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from acp_proxy.config.files import ConfigError
from acp_proxy.hub.settings import load
from acp_proxy.hub.site import Site
from acp_proxy.ledger import open_ledger
from acp_proxy.system.ids import uuid7
from harness.otlp import in_prometheus, resource_of, spans_of, values_of
from harness.rows import NOON, line, row
from tests.hub.process import hub
from tests.ledger.warned import Warnings
from tests.notify.receiver import Receiver, receiving

TURN = row(line("claude-opus-5-5", "0.123456789", input=10), id=uuid7(NOON), session="s9")


async def sent(receiver: Receiver, signal: str) -> list[bytes]:
    """Of this signal, at least one."""
    while not (found := [body for request, _, body in receiver.requests if f"/v1/{signal}" in request]):
        await receiver.until(len(receiver.requests) + 1)
    return found


async def test_turns_and_metrics_of_its_organisation_arrive_and_it_ends_when_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as receiver:
        text = f"""
            organisation = "acme"
            [otlp]
            endpoint = "http://127.0.0.1:{receiver.port}"
            headers = "authorization=Bearer%20${{KEY}}"
            interval = "1s"
        """
        async with hub(tmp_path, text, KEY="verysecret") as (process, url, token):
            await sent(receiver, "metrics")  # from now on there is an exporter, and turns are noted for it
            monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", token)
            await asyncio.to_thread(append, url)
            (span,) = spans_of((await sent(receiver, "traces"))[0])
            assert span.trace_id.hex() == TURN.entry.id.replace("-", "")
            assert values_of(span.attributes)["acp_proxy.cost"] == 0.123456789
            await receiver.until(len(receiver.requests) + 2)
            last = [body for request, _, body in receiver.requests if "/v1/metrics" in request][-1]
            costs = [value for (name, _), value in in_prometheus(last).items() if name == "acp_proxy_cost_total"]
            assert costs == [0.123456789]
            assert resource_of(last)["service.name"] == "acp-proxy"
            assert {headers["authorization"] for _, headers, _ in receiver.requests} == {"Bearer verysecret"}
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 20) == 0


async def test_the_environment_is_enough(tmp_path: Path) -> None:
    async with receiving() as receiver:
        named = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.port}"}
        async with hub(tmp_path, "", **named):
            assert await sent(receiver, "metrics")


def append(url: str) -> None:
    ledger = open_ledger(url, journals=())
    ledger.append([TURN])
    ledger.close()


async def test_without_a_word_of_it_nothing_is_sent(tmp_path: Path) -> None:
    site = Site(load(None, {"XDG_STATE_HOME": str(tmp_path)}), {"HOME": str(tmp_path)}, Warnings())
    before = asyncio.all_tasks()
    async with site.sending():
        assert asyncio.all_tasks() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('endpiont = "http://x"', "otlp.endpiont: unknown key; did you mean otlp.endpoint?"),
        ('endpoint = "x"', "otlp.endpoint: expected"),
        ('headers = "authorization=verysecret"', "otlp.headers: expected ${VARIABLE} or ${file:PATH} for the key"),
        ('headers = "authorization=${NONE}"', "otlp.headers: the environment has no NONE"),
        ('interval = "soon"', "otlp.interval: expected"),
    ],
    ids=["key", "address", "secret", "variable", "interval"],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "hub.toml"
    file.write_text(f"[otlp]\n{text}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    assert str(caught.value).startswith(f"{file}:2: {said}")
    assert len(str(caught.value).splitlines()) == 1
    assert "verysecret" not in str(caught.value)
