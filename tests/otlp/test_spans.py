"""Rows as spans: each once, with the figures of the ledger, whatever becomes of exporter and receiver meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from acp_proxy.core.entry import IMPORT, ToolCall, ToolSum, Work
from acp_proxy.ledger import Row
from acp_proxy.system.ids import uuid7
from harness.otlp import spans_of, values_of
from harness.rows import ALICE, MINUTE, NOON, amended, line, row
from tests.notify.receiver import Receiver, answer, receiving
from tests.otlp.house import Clock, House, house

HOUR = 60 * MINUTE


def turn(number: int = 0, *lines: Any, **fields: Any) -> Row:
    return row(*(lines or (line("claude-opus-5-5", input=number + 1),)), id=uuid7(NOON + number), **fields)


def sent(receiver: Receiver) -> list[Span]:
    return [span for _, _, body in receiver.requests for span in spans_of(body)]


async def begin(at: House) -> None:
    """From its first round on an exporter is there, and rows are noted for it."""
    await at.stream("traces").round()


async def test_a_turn_is_a_span_with_the_figures_of_its_row(tmp_path: Path) -> None:
    usage = line("claude-opus-5-5", "0.123456789", input=10, cached_read=200, cached_write=30, output=5, thought=7)
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        await begin(at)
        of_turn = turn(0, usage, session="s9", cost_source="agent", context_used=1000, context_size=200_000)
        at.append(of_turn)
        assert await at.stream("traces").round() == 5.0
        (span,) = sent(receiver)
        assert receiver.requests[0][0] == "POST /v1/traces HTTP/1.1"
        assert (span.name, span.kind) == ("invoke_agent claude-agent-acp", Span.SPAN_KIND_CLIENT)
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == (NOON, NOON + MINUTE)
        assert (span.trace_id.hex(), span.span_id) == (of_turn.entry.id.replace("-", ""), span.trace_id[8:])
        assert (span.parent_span_id, span.status.code) == (b"", Status.STATUS_CODE_UNSET)
        assert values_of(span.attributes) == {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "claude-agent-acp",
            "gen_ai.agent.version": "0.100.0",
            "gen_ai.conversation.id": "s9",
            "gen_ai.provider.name": "anthropic",
            "gen_ai.request.model": "claude-opus-5-5",
            "gen_ai.response.model": "claude-opus-5-5",
            "gen_ai.usage.input_tokens": 240,
            "gen_ai.usage.output_tokens": 12,
            "gen_ai.usage.cache_read.input_tokens": 200,
            "gen_ai.usage.cache_creation.input_tokens": 30,
            "gen_ai.usage.reasoning.output_tokens": 7,
            "gen_ai.response.finish_reasons": ["end_turn"],
            "acp_proxy.kind": "turn",
            "acp_proxy.usage.source": "agent",
            "acp_proxy.cost.source": "agent",
            "acp_proxy.cost": 0.123456789,
            "acp_proxy.cost.currency": "USD",
            "acp_proxy.context.used": 1000,
            "acp_proxy.context.size": 200_000,
            "acp_proxy.team": "core",
        }


async def test_tool_calls_are_children_of_their_turn_and_the_turn_one_of_the_editors_span(tmp_path: Path) -> None:
    parent = f"{'ab' * 16}-{'cd' * 8}"
    work = Work(
        parent,
        (ToolCall("read", 100, 50, "completed"), ToolCall("execute", 200, 7000, "failed"), ToolCall("edit", 900)),
        (ToolSum("edit", 1, 0, 0), ToolSum("execute", 1, 1, 7000), ToolSum("read", 1, 0, 50)),
    )
    of_turn = turn()
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        await begin(at)
        at.append(amended(of_turn, work=work))
        await at.stream("traces").round()
        whole, *calls = sent(receiver)
        assert (whole.trace_id.hex(), whole.parent_span_id.hex()) == ("ab" * 16, "cd" * 8)
        assert values_of(whole.attributes)["acp_proxy.tool_calls"] == 3
        assert {(call.trace_id, call.parent_span_id) for call in calls} == {(whole.trace_id, whole.span_id)}
        assert len({call.span_id for call in calls} | {whole.span_id}) == 4
        milli = 10**6
        assert [
            (call.name, call.start_time_unix_nano, call.end_time_unix_nano, call.status.code) for call in calls
        ] == [
            ("execute_tool read", NOON + 100 * milli, NOON + 150 * milli, Status.STATUS_CODE_UNSET),
            ("execute_tool execute", NOON + 200 * milli, NOON + 7200 * milli, Status.STATUS_CODE_ERROR),
            ("execute_tool edit", NOON + 900 * milli, NOON + MINUTE, Status.STATUS_CODE_UNSET),
        ]


async def test_a_turn_whose_agent_crashed_is_an_error(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        await begin(at)
        at.append(turn(0, line(None, None), stop_reason="crashed", usage_source="none"))
        await at.stream("traces").round()
        (span,) = sent(receiver)
        attributes = values_of(span.attributes)
        assert (span.status.code, attributes["error.type"]) == (Status.STATUS_CODE_ERROR, "crashed")
        assert attributes["gen_ai.provider.name"] == "unknown"
        assert not [name for name in attributes if name.startswith("gen_ai.usage") or name == "gen_ai.request.model"]


async def test_only_what_is_done_while_there_is_an_exporter_is_sent_and_nothing_of_an_import(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        at.append(turn(1))
        await begin(at)
        at.append(turn(2), turn(3, origin=replace(ALICE, client=IMPORT)))
        await at.stream("traces").round()
        assert [values_of(span.attributes)["gen_ai.usage.input_tokens"] for span in sent(receiver)] == [3]


async def test_each_turn_is_sent_once_over_restarts(tmp_path: Path) -> None:
    clock = Clock()
    async with receiving() as receiver:
        async with house(tmp_path, receiver, clock=clock) as at:
            await begin(at)
            at.append(turn(1))
            await at.stream("traces").round()
            await at.stream("traces").round()
            at.append(turn(2))
        async with house(tmp_path, receiver, clock=clock) as at:
            at.append(turn(3))
            await at.stream("traces").round()
            await at.stream("traces").round()
        found = [values_of(span.attributes)["gen_ai.usage.input_tokens"] for span in sent(receiver)]
        assert sorted(found) == [2, 3, 4]


async def test_what_was_sent_just_before_a_kill_is_sent_again_as_the_same_spans(tmp_path: Path) -> None:
    clock = Clock()
    async with receiving() as receiver:
        async with house(tmp_path, receiver, clock=clock) as at:
            await begin(at)
            at.append(turn(1), turn(2))
            batch = await at.stream("traces")._books.ask(at.stream("traces")._next)  # sent, and never settled
            assert batch is not None
            await at.stream("traces").poster.post(batch.content)
        async with house(tmp_path, receiver, clock=clock) as at:
            await at.stream("traces").round()
        first, second = (spans_of(body) for _, _, body in receiver.requests)
        assert first == second
        assert len(first) == 2


async def test_a_receiver_that_is_away_for_an_hour_gets_all_of_it(tmp_path: Path) -> None:
    async with receiving(*[answer(503)] * 70) as receiver, house(tmp_path, receiver) as at:
        await begin(at)
        slept, number = 0.0, 0
        while receiver.answers:
            number += 1
            at.append(turn(number))
            slept += await at.stream("traces").round()
            at.clock.now = NOON + int(slept * 10**9)
        assert slept > 3600
        before = len(receiver.requests)
        await at.stream("traces").round()
        taken = [values_of(span.attributes)["gen_ai.usage.input_tokens"] for span in sent(receiver)[-number:]]
        assert sorted(taken) == list(range(2, number + 2))
        assert len(receiver.requests) == before + 1


async def test_many_turns_go_in_several_requests(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        await begin(at)
        at.append(*(turn(number) for number in range(2500)))
        await at.stream("traces").round()
        assert [len(spans_of(body)) for _, _, body in receiver.requests] == [1000, 1000, 500]
        assert len({span.span_id for span in sent(receiver)}) == 2500


async def test_a_request_that_is_too_large_is_sent_in_parts_and_a_turn_that_nobody_takes_is_given_up(
    tmp_path: Path,
) -> None:
    async with receiving(*[answer(413)] * 4) as receiver, house(tmp_path, receiver) as at:
        await begin(at)
        at.append(*(turn(number) for number in range(8)))
        await at.stream("traces").round()
        assert [len(spans_of(body)) for _, _, body in receiver.requests] == [8, 4, 2, 1, 1, 2, 4]
        assert len({span.span_id for _, _, body in receiver.requests[4:] for span in spans_of(body)}) == 7


async def test_what_is_refused_is_said_and_not_sent_again(tmp_path: Path) -> None:
    async with receiving(answer(400)) as receiver, house(tmp_path, receiver) as at:
        await begin(at)
        at.append(turn(1))
        await at.stream("traces").round()
        at.append(turn(2))
        await at.stream("traces").round()
        assert [values_of(span.attributes)["gen_ai.usage.input_tokens"] for span in sent(receiver)] == [2, 3]
        assert at.warnings.told[0][1]["error"] == "HTTP 400"


async def test_of_two_exporters_one_sends_each_turn(tmp_path: Path) -> None:
    clock = Clock()
    async with (
        receiving() as receiver,
        house(tmp_path, receiver, clock=clock) as one,
        house(tmp_path, receiver, clock=clock) as other,
    ):
        await begin(one)
        for number in range(6):
            one.append(turn(number))
            for at in (other, one):
                await at.stream("traces").round()
        assert len(sent(receiver)) == len({span.span_id for span in sent(receiver)}) == 6


async def test_two_that_send_elsewhere_each_send_all(tmp_path: Path) -> None:
    async with receiving() as one, receiving() as other, house(tmp_path, one) as at, house(tmp_path, other) as also:
        await begin(at)
        await begin(also)
        at.append(turn(1))
        await at.stream("traces").round()
        await also.stream("traces").round()
        assert sent(one) == sent(other) != []


async def test_users_and_projects_are_named_only_where_metrics_name_them(tmp_path: Path) -> None:
    async with receiving() as receiver:
        for text in ("", "[metrics]\nuser_label = true\nproject_label = true\n"):
            async with house(tmp_path, receiver, text) as at:
                await begin(at)
                at.append(turn(len(text)))
                await at.stream("traces").round()
        plain, named = sent(receiver)
        assert "alice" not in str(plain)
        assert values_of(named.attributes)["acp_proxy.user"] == "alice"
        assert values_of(named.attributes)["acp_proxy.project"] == "web"
