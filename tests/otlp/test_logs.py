"""What happens as log records: decisions of budgets, grants, windows of plans, crashes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.plans import PlanWindow
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import Grant
from acp_proxy.system.ids import uuid7
from harness.otlp import records_of, values_of
from harness.rows import ALICE, MINUTE, NOON, line, row
from tests.notify.house import notice
from tests.notify.receiver import Receiver, receiving
from tests.otlp.house import House, house

_ROW = row(line(), id=uuid7(NOON))
CRASHED = replace(_ROW, entry=replace(_ROW.entry, stop_reason="crashed"))


def happen(at: House) -> None:
    with closing(open_ledger(at.config.ledger.url, journals=())) as ledger:
        ledger.outbox.note([notice(80)])
        ledger.grant(
            Grant("g1", "default", "user", "daily", None, 5 * 10**9, "USD", NOON, NOON + MINUTE, "bob", "SECRET reason")
        )
        ledger.note_plan(ALICE, [PlanWindow("five_hour", 400_000, "allowed", NOON + MINUTE, None, NOON + 1)])
        ledger.append([CRASHED])


def said(receiver: Receiver) -> dict[str, dict[str, Any]]:
    records = [record for _, _, body in receiver.requests for record in records_of(body)]
    return {record.event_name: values_of(record.attributes) for record in records}


async def test_each_is_a_record_with_its_own_name(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        await at.stream("logs").round()
        happen(at)
        assert await at.stream("logs").round() == 5.0
        assert receiver.requests[0][0] == "POST /v1/logs HTTP/1.1"
        found = said(receiver)
        assert set(found) == {
            "acp_proxy.budget.threshold",
            "acp_proxy.budget.grant",
            "acp_proxy.plan.window",
            "acp_proxy.agent.crash",
        }
        threshold, grant = found["acp_proxy.budget.threshold"], found["acp_proxy.budget.grant"]
        assert (threshold["acp_proxy.budget"], threshold["acp_proxy.threshold"]) == ("daily", 0.8)
        assert (threshold["acp_proxy.spent"], threshold["acp_proxy.limit"]) == (0.8, 1)
        assert threshold["acp_proxy.unit"] == "USD"
        assert (grant["acp_proxy.granted"], grant["acp_proxy.until"]) == (5.0, NOON + MINUTE)
        window = found["acp_proxy.plan.window"]
        assert (window["acp_proxy.window"], window["acp_proxy.used"]) == ("five_hour", 0.4)


async def test_a_crash_names_the_span_of_its_turn(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        await at.stream("logs").round()
        happen(at)
        await at.stream("logs").round()
        (crash,) = [each for each in records_of(receiver.requests[0][2]) if each.event_name == "acp_proxy.agent.crash"]
        assert crash.trace_id.hex() == CRASHED.entry.id.replace("-", "")
        assert crash.span_id == crash.trace_id[8:]
        assert (crash.time_unix_nano, crash.severity_text) == (NOON + MINUTE, "ERROR")


async def test_neither_people_nor_their_reasons_are_named_unless_that_is_asked_for(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver, OTEL_EXPORTER_OTLP_COMPRESSION="none") as at:
        await at.stream("logs").round()
        happen(at)
        await at.stream("logs").round()
        (body,) = [body for _, _, body in receiver.requests]
        for word in (b"alice", b"bob", b"SECRET"):
            assert word not in body


async def test_they_are_sent_once_and_in_the_order_of_time(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        await at.stream("logs").round()
        happen(at)
        happen(at)
        for _ in range(3):
            await at.stream("logs").round()
        (body,) = [body for _, _, body in receiver.requests]
        times = [record.time_unix_nano for record in records_of(body)]
        assert times == sorted(times)
        assert len(times) == 4


async def test_what_is_not_wanted_does_not_pile_up(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver, OTEL_LOGS_EXPORTER="none") as at:
        await at.stream("metrics").round()
        happen(at)
        with closing(open_ledger(at.config.ledger.url, journals=())) as ledger:
            assert [each.waiting for each in ledger.exports.exporters("default")] == [5]
            await at.stream("metrics").round()
            assert [each.waiting for each in ledger.exports.exporters("default")] == [1]  # the turn, as a span
