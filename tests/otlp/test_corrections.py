"""A turn of which more is known after its span was sent: told beside the span, which cannot be changed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.entry import UsageLine, Work
from acp_proxy.core.money import NANO
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.system.ids import uuid7
from harness.otlp import in_prometheus, records_of, spans_of, values_of
from harness.rows import MINUTE, NOON, line, row
from tests.notify.receiver import Receiver, answer, receiving
from tests.otlp.house import House, house

LATER = NOON + 5 * MINUTE
TOLD = row(line("claude-opus-5-5", None, input=7), id=uuid7(NOON), session="s9", usage_source="partial")


def known(*lines: UsageLine, before: Row = TOLD) -> Row:
    entry = replace(before.entry, lines=lines, usage_source="agent", cost_source="agent", detail="from its own files")
    return replace(before, entry=entry)


EXACT = known(
    line("claude-opus-5-5", "9000000.123456789", input=10, cached_read=200, cached_write=30, output=5, thought=7)
)


def correct(at: House, before: Row, after: Row, now: int = LATER) -> None:
    with closing(open_ledger(at.config.ledger.url, journals=())) as ledger:
        assert ledger.correct(before, after, now)


def corrected(receiver: Receiver) -> list[Any]:
    records = [each for request, _, body in receiver.requests if "/logs" in request for each in records_of(body)]
    return [each for each in records if each.event_name == "acp_proxy.turn.corrected"]


async def begin(at: House) -> None:
    for signal in ("traces", "logs"):
        await at.stream(signal).round()


async def test_the_new_figures_are_a_record_with_the_ids_of_the_span(tmp_path: Path) -> None:
    parent = f"{'ab' * 16}-{'cd' * 8}"
    before = replace(TOLD, entry=replace(TOLD.entry, work=Work(parent, (), ())))
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        await begin(at)
        at.append(before)
        await at.stream("traces").round()
        (span,) = spans_of(receiver.requests[-1][2])
        assert values_of(span.attributes)["gen_ai.usage.input_tokens"] == 7
        correct(at, TOLD, EXACT)
        await at.stream("logs").round()
        await at.stream("traces").round()
        (record,) = corrected(receiver)
        assert (record.trace_id, record.span_id) == (span.trace_id, span.span_id)
        assert record.trace_id.hex() == "ab" * 16
        assert (record.time_unix_nano, record.severity_text) == (LATER, "INFO")
        found = values_of(record.attributes)
        assert round(found.pop("acp_proxy.cost") * NANO) == EXACT.entry.costs[0].nano == 9_000_000_123_456_789
        assert found == {
            "acp_proxy.id": TOLD.entry.id,
            "acp_proxy.correction": 1,
            "gen_ai.agent.name": "claude-agent-acp",
            "gen_ai.agent.version": "0.100.0",
            "gen_ai.conversation.id": "s9",
            "gen_ai.response.model": "claude-opus-5-5",
            "gen_ai.usage.input_tokens": 240,
            "gen_ai.usage.output_tokens": 12,
            "gen_ai.usage.cache_read.input_tokens": 200,
            "gen_ai.usage.cache_creation.input_tokens": 30,
            "gen_ai.usage.reasoning.output_tokens": 7,
            "acp_proxy.cost.currency": "USD",
            "acp_proxy.usage.source": "agent",
            "acp_proxy.cost.source": "agent",
            "acp_proxy.team": "core",
        }
        assert len([request for request, _, _ in receiver.requests if "/traces" in request]) == 1


async def test_each_correction_is_told_once_over_restarts_and_refusals(tmp_path: Path) -> None:
    less = known(line("claude-opus-5-5", "0.2", input=5), before=EXACT)
    async with receiving(answer(503), answer(200)) as receiver:
        async with house(tmp_path, receiver) as at:
            await at.stream("logs").round()
            at.append(TOLD)
            correct(at, TOLD, EXACT)
            assert await at.stream("logs").round() == 1.0  # it is not taken
        async with house(tmp_path, receiver) as at:
            await at.stream("logs").round()
            correct(at, EXACT, less, LATER + MINUTE)
            for _ in range(2):
                await at.stream("logs").round()
        _, *taken = corrected(receiver)
        assert [values_of(each.attributes)["acp_proxy.correction"] for each in taken] == [1, 2]
        assert [values_of(each.attributes)["acp_proxy.cost"] for each in taken] == [9_000_000.123456789, 0.2]


async def test_metrics_follow_to_the_nano_unit(tmp_path: Path) -> None:
    before = known(line("claude-opus-5-5", "0.000000001", input=7))
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        at.append(before)
        await at.stream("metrics").round()
        correct(at, before, EXACT)
        await at.stream("metrics").round()
        first, second = (_sums(body) for _, _, body in receiver.requests)
        assert first == {"acp_proxy_tokens_total": 7, "acp_proxy_cost_total": 1}
        assert second == {"acp_proxy_tokens_total": 252, "acp_proxy_cost_total": 9_000_000_123_456_789}


async def test_where_no_log_records_are_sent_none_wait(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver, OTEL_LOGS_EXPORTER="none") as at:
        await at.stream("metrics").round()
        before = known(line("claude-opus-5-5", "1", input=7))
        at.append(before)
        correct(at, before, EXACT)
        with closing(open_ledger(at.config.ledger.url, journals=())) as ledger:
            assert [each.waiting for each in ledger.exports.exporters("default")] == [2]
            await at.stream("metrics").round()
            assert [each.waiting for each in ledger.exports.exporters("default")] == [1]  # the turn, as a span


def _sums(body: bytes) -> dict[str, int]:
    """Tokens, and cost in nano-units."""
    found: dict[str, int] = {}
    for (name, _), value in in_prometheus(body).items():
        if value and name in ("acp_proxy_tokens_total", "acp_proxy_cost_total"):
            found[name] = found.get(name, 0) + round(value * (NANO if "cost" in name else 1))
    return found
