"""Differences: added up they are what the ledger says, whatever becomes of exporter and receiver meanwhile."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

from acp_proxy.ledger import open_ledger
from acp_proxy.otlp.metrics import DELTA
from harness.otlp import each_metric, in_prometheus
from harness.rows import MINUTE, NOON, line, row
from tests.metrics.scrapes import Scraped, exporter
from tests.notify.receiver import Receiver, answer, receiving
from tests.otlp.house import Clock, House, house

AS_DELTAS = '[otlp]\ntemporality = "delta"\n'
COUNTED = ("acp_proxy_tokens_total", "acp_proxy_turns_total", "acp_proxy_turn_duration_seconds_count")


def added_up(*bodies: bytes) -> dict[str, float]:
    sums = Counter[str]()
    for body in bodies:
        for (name, _), value in in_prometheus(body).items():
            if name in COUNTED:
                sums[name] += value  # type: ignore[assignment]
    return dict(sums)


def scraped(at: House) -> dict[str, float]:
    with closing(open_ledger(at.config.ledger.url, journals=())) as ledger:
        found = Scraped(exporter(at.config, NOON / 10**9).scrape(ledger))
    return {name: float(found.total(name)) for name in COUNTED}


def taken(receiver: Receiver, *, but: int = 0) -> list[bytes]:
    """What was answered by 200, without the first so many, which were refused."""
    return [body for _, _, body in receiver.requests[but:]]


async def test_added_up_they_are_the_ledgers_sums_over_restarts(tmp_path: Path) -> None:
    clock = Clock()
    async with receiving() as receiver:
        for number in range(4):
            async with house(tmp_path, receiver, AS_DELTAS, clock=clock) as at:
                at.append(row(line(input=number + 1)), row(line("sonnet", "2.5", output=7)))
                await at.stream("metrics").round()
                clock.now += MINUTE
                at.append(row(line(input=10)))
                await at.stream("metrics").round()
                clock.now += MINUTE
        assert len(receiver.requests) == 8
        assert added_up(*taken(receiver)) == scraped(at)


async def test_each_begins_where_the_one_before_ended(tmp_path: Path) -> None:
    clock = Clock()
    async with receiving() as receiver, house(tmp_path, receiver, AS_DELTAS, clock=clock) as at:
        at.append(row(at=NOON - MINUTE))
        times = []
        for _ in range(3):
            await at.stream("metrics").round()
            clock.now += MINUTE
            metrics = [each for each in each_metric(receiver.requests[-1][2]) if each.HasField("sum")]
            assert {each.sum.aggregation_temporality for each in metrics} == {DELTA}
            points = [point for each in metrics for point in each.sum.data_points]
            times.append({(point.start_time_unix_nano, point.time_unix_nano) for point in points})
        assert times == [
            {(NOON - MINUTE, NOON)},
            {(NOON, NOON + MINUTE)},
            {(NOON + MINUTE, NOON + 2 * MINUTE)},
        ]


async def test_what_a_receiver_did_not_take_is_sent_again_as_it_was_and_then_the_rest(tmp_path: Path) -> None:
    clock = Clock()
    async with receiving(answer(503), answer(503)) as receiver:
        async with house(tmp_path, receiver, AS_DELTAS, clock=clock) as at:
            at.append(row(line(input=1)))
            await at.stream("metrics").round()
        clock.now += MINUTE
        async with house(tmp_path, receiver, AS_DELTAS, clock=clock) as at:
            at.append(row(line(input=2)))
            for _ in range(3):
                await at.stream("metrics").round()
                clock.now += MINUTE
            first, again, third, rest = taken(receiver)
            assert first == again == third
            assert added_up(third, rest) == scraped(at)


async def test_what_was_sent_just_before_a_kill_is_the_same_request_afterwards(tmp_path: Path) -> None:
    clock = Clock()
    async with receiving() as receiver:
        async with house(tmp_path, receiver, AS_DELTAS, clock=clock) as at:
            at.append(row())
            batch = await at.stream("metrics")._books.ask(at.stream("metrics")._next)
            assert batch is not None
            await at.stream("metrics").poster.post(batch.content)
        clock.now += MINUTE
        async with house(tmp_path, receiver, AS_DELTAS, clock=clock) as at:
            at.append(row())
            await at.stream("metrics").round()
            await at.stream("metrics").round()
            first, again, rest = taken(receiver)
            assert first == again
            assert added_up(again, rest) == scraped(at)


async def test_what_is_refused_for_good_holds_up_nothing(tmp_path: Path) -> None:
    async with receiving(answer(400)) as receiver, house(tmp_path, receiver, AS_DELTAS) as at:
        at.append(row(line(input=1)))
        await at.stream("metrics").round()
        at.append(row(line(input=2)))
        await at.stream("metrics").round()
        assert added_up(taken(receiver)[1])["acp_proxy_turns_total"] == 1


async def test_sums_that_a_rebuild_made_smaller_are_not_sent_again(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver, AS_DELTAS) as at:
        at.append(row(line(input=100)), row(line(input=50)))
        with closing(open_ledger(at.config.ledger.url, journals=())) as ledger:
            ledger.tables.write(lambda run: run("UPDATE total SET input = input + 30", ()))
        await at.stream("metrics").round()
        with closing(open_ledger(at.config.ledger.url, journals=())) as ledger:
            assert not ledger.rebuild()
        at.append(row(line(input=7)))
        await at.stream("metrics").round()  # still less than what was sent
        at.append(row(line(input=40)))
        await at.stream("metrics").round()
        sent = [added_up(body).get("acp_proxy_tokens_total", 0) for _, _, body in receiver.requests]
        assert sent == [180, 0, 17]
        assert sum(sent) == scraped(at)["acp_proxy_tokens_total"] == 197


async def test_cumulative_series_begin_when_they_did_after_a_rebuild(tmp_path: Path) -> None:
    async with receiving() as receiver, house(tmp_path, receiver) as at:
        at.append(row(line(input=100), at=NOON - MINUTE))
        await at.stream("metrics").round()
        with closing(open_ledger(at.config.ledger.url, journals=())) as ledger:
            assert ledger.rebuild()
        await at.stream("metrics").round()
        before, after = (_tokens(body) for _, _, body in receiver.requests)
        assert before == after == {(NOON - MINUTE, 100)}


def _tokens(body: bytes) -> set[tuple[int, int]]:
    """Start times and numbers."""
    (metric,) = (each for each in each_metric(body) if each.name == "acp_proxy.tokens")
    return {(point.start_time_unix_nano, point.as_int) for point in metric.sum.data_points if point.as_int}
