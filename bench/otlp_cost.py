"""What an export costs: of a million turns beside the OpenTelemetry SDK, and of ten turns a second.

Both read the same rows of the same ledger, and send the same spans, compressed, to the same receiver, which reads and
forgets them. Each runs in a process of its own, so that its memory is its own, and both at the same time, so that what
others do on the machine slows both. Of a million turns this is done with the first fifth, of which the SDK needs the
same for each half; the rest acp-proxy sends alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config, load
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.metrics import Exporter
from acp_proxy.otlp.exporting import Exporting
from acp_proxy.otlp.outgoing import name_of
from acp_proxy.otlp.settings import OtlpSettings, settings_of
from acp_proxy.system.ids import uuid7
from bench.ledgers import LEDGER, ledger_of
from harness.ports import free_port
from harness.rows import SECOND, amended

_A_SECOND, _ROUND, _ROUNDS = 10, 5, 60  # turns; seconds; rounds, of which each twelfth has metrics
_BATCH = 1000
_AT_ONCE = 200_000  # spans that both send, at most


def main(arguments: list[str]) -> None:
    match arguments:
        case ["sink", port]:
            asyncio.run(_sink(int(port)))
        case [which, home, port, spans]:
            measure: dict[str, Callable[[Path, int], dict[str, float]]] = {
                "ours": _ours,
                "sdk": partial(_sdk, spans=int(spans)),
                "sdk keeping all": partial(_sdk, spans=int(spans), keeps_all=True),
                "steady": _steady,
            }
            sys.stdout.write(json.dumps(measure[which](Path(home), int(port))))
        case _:
            _compare(100_000 if "--quick" in arguments else 1_000_000)


def _compare(turns: int) -> None:
    with tempfile.TemporaryDirectory() as directory, _receiver() as port:
        home = Path(directory)
        (home / LEDGER).parent.mkdir(parents=True)
        shutil.copy(ledger_of(turns) / LEDGER, home / LEDGER)
        some = min(turns, _AT_ONCE)
        _note(home, port, some)
        sdk, ours = _measured(("sdk", "ours"), home, port, some)
        (kept,) = _measured(("sdk keeping all",), home, port, some)
        for name, one in {"sdk": sdk, "sdk keeping all": kept, "ours": ours}.items():
            say(_in_words(name, some, one))
        time_, cpu, memory = (ours[of] / sdk[of] for of in ("wall", "cpu", "peak"))
        say(f"{time_:.2f} of the SDK's time, {cpu:.2f} of its CPU, {memory:.2f} of its memory")
        of_all = kept["before"] + (kept["peak"] - kept["before"]) * turns / some
        if turns > some:
            _note(home, port, turns)
            (ours,) = _measured(("ours",), home, port, some)
            say(_in_words("ours, the rest", turns - some, ours))
        say(f"memory {ours['peak'] / of_all:.2f} of what an SDK needs that keeps {turns:,}, {of_all:.0f} MB")
        (steady,) = _measured(("steady",), home, port, 0)
        say(f"{_A_SECOND} turns a second: {steady['cpu'] / steady['seconds'] * 100:.2f} % of a core")
        say(f"load {', '.join(f'{each:.0f}' for each in os.getloadavg())} on {os.cpu_count()} cores at the end")


def _in_words(name: str, spans: int, found: dict[str, float]) -> str:
    each = {of: found[of] / spans * 1e6 for of in ("wall", "cpu")}
    took = f"{found['wall']:6.1f} s, {each['wall']:.0f} µs a span, {each['cpu']:.0f} µs of CPU"
    halves = f" ({found['half'] / found['wall'] * 100:.0f} % of it for the first half)" if found["half"] else ""
    memory = f"{found['peak']:.0f} MB at most, {found['peak'] - found['before']:.0f} MB of them for it"
    return f"{name:<15} {spans:>9,} spans: {took}{halves}; {memory}"


def _measured(which: tuple[str, ...], home: Path, port: int, spans: int) -> list[dict[str, float]]:
    """All of them at the same time."""
    commands = [[sys.executable, "-m", "bench.otlp_cost", each, str(home), str(port), str(spans)] for each in which]
    with ExitStack() as stack:
        running = [stack.enter_context(subprocess.Popen(each, stdout=subprocess.PIPE)) for each in commands]
        said = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit(1)
    return [json.loads(each) for each in said]


def _configured(home: Path, port: int) -> tuple[Config, OtlpSettings]:
    environ = {"HOME": str(home), "USER": "alice", "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
    config = load({}, environ, admin_file=home / "none.toml")
    settings = settings_of(config, environ)
    if settings is None:
        raise RuntimeError("no endpoint")
    return config, settings


def _note(home: Path, port: int, turns: int) -> None:
    """The first of them, as if an exporter had been there from the first turn on; those that were sent not again."""
    config, settings = _configured(home, port)
    name = name_of(settings.targets)
    with closing(open_ledger(config.ledger.url)) as ledger:
        ledger.exports.begin("default", name, time.time_ns())
    with closing(sqlite3.connect(home / LEDGER)) as connection:
        began = "SELECT org_id, ?, 'turn', id, ? FROM turn ORDER BY started_at LIMIT ? OFFSET ?"
        first = 0 if turns <= _AT_ONCE else _AT_ONCE
        connection.execute(f"INSERT INTO unexported {began}", (name, time.time_ns(), turns - first, first))
        connection.commit()


def _exporting(home: Path, port: int) -> Exporting:
    config, settings = _configured(home, port)
    exporter = Exporter(config, Catalog(), journals=(), process=False)
    return Exporting(settings, exporter, config, Catalog(), lambda: open_ledger(config.ledger.url), _warn)


def _warn(event: str, **fields: object) -> None:
    say(f"{event} {fields}")


def _ours(home: Path, port: int) -> dict[str, float]:
    async def export() -> None:
        exporting = _exporting(home, port)
        for stream in exporting.streams:
            await stream.round()
        await exporting.aclose()

    return _timed(lambda: asyncio.run(export()))


def _sdk(home: Path, port: int, *, spans: int, keeps_all: bool = False) -> dict[str, float]:
    """The first of them. Told to send each thousand, so that its queue is never full; or with a queue for them all, as
    where nobody takes them: it drops what finds no place there, and has no other place for it.
    """
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import SpanKind

    config, _ = _configured(home, port)
    exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{port}/v1/traces", compression=Compression.Gzip)

    half = 0.0

    def export() -> None:
        nonlocal half
        began_at = time.monotonic()
        provider = TracerProvider(resource=Resource({"service.name": "acp-proxy"}))
        delay = 3_600_000.0 if keeps_all else None  # ms
        room = 10**7 if keeps_all else 4 * _BATCH
        processor = BatchSpanProcessor(exporter, room, delay, max_export_batch_size=10**7 if keeps_all else _BATCH)
        provider.add_span_processor(processor)
        tracer = provider.get_tracer("acp_proxy")
        with closing(open_ledger(config.ledger.url)) as ledger:
            for number, row in enumerate(islice(ledger.rows(Query()), spans), 1):
                name = f"invoke_agent {row.origin.agent}"
                attributes = _attributes(row)
                began = row.entry.started_at
                span = tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes, start_time=began)
                span.end(row.entry.ended_at)
                if number % _BATCH == 0 and not keeps_all:
                    provider.force_flush()
                if number == spans // 2:
                    half = time.monotonic() - began_at
        if not keeps_all:
            provider.shutdown()

    found = _timed(export)
    return {**found, "half": half}


def _attributes(row: Row) -> dict[str, Any]:
    """Those that are sent of it."""
    entry, usage = row.entry, row.entry.usage
    found = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": row.origin.agent,
        "gen_ai.agent.version": row.origin.agent_version,
        "gen_ai.conversation.id": entry.session,
        "gen_ai.provider.name": "unknown",
        "gen_ai.request.model": entry.model,
        "gen_ai.response.model": entry.model,
        "gen_ai.usage.input_tokens": usage.input + usage.cached_read + usage.cached_write,
        "gen_ai.usage.output_tokens": usage.output + usage.thought,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_read or None,
        "gen_ai.usage.cache_creation.input_tokens": usage.cached_write or None,
        "gen_ai.usage.reasoning.output_tokens": usage.thought or None,
        "gen_ai.response.finish_reasons": [entry.stop_reason],
        "acp_proxy.kind": entry.kind,
        "acp_proxy.usage.source": entry.usage_source,
        "acp_proxy.cost.source": entry.cost_source,
        "acp_proxy.cost": entry.costs[0].nano / 1e9 if entry.costs else None,
        "acp_proxy.cost.currency": entry.costs[0].currency if entry.costs else None,
        "acp_proxy.context.used": entry.context_used,
        "acp_proxy.context.size": entry.context_size,
        "acp_proxy.team": row.origin.team,
    }
    return {name: value for name, value in found.items() if value is not None}


def _steady(home: Path, port: int) -> dict[str, float]:
    """The exporter's rounds alone: who appends the turns is another process, wherever people work."""
    config, _ = _configured(home, port)
    spent = 0.0

    async def rounds() -> None:
        nonlocal spent
        exporting = _exporting(home, port)
        streams = {stream.poster.to.signal: stream for stream in exporting.streams}
        with closing(open_ledger(config.ledger.url)) as ledger:
            (last,) = ledger.costliest(Query(), ("USD",), 1)
            for number in range(_ROUNDS):
                ledger.append([_anew(last) for _ in range(_A_SECOND * _ROUND)])
                before = time.process_time()
                await streams["traces"].round()
                await streams["logs"].round()
                if number % 12 == 0:
                    await streams["metrics"].round()
                spent += time.process_time() - before
        await exporting.aclose()

    asyncio.run(rounds())
    return {"cpu": spent, "seconds": float(_ROUNDS * _ROUND)}


def _anew(row: Row) -> Row:
    now = time.time_ns()
    return amended(row, id=uuid7(now), started_at=now - SECOND, ended_at=now)


def _timed(work: Any) -> dict[str, float]:
    before = _megabytes("VmRSS")
    began, cpu = time.monotonic(), time.process_time()
    work()
    wall, spent = time.monotonic() - began, time.process_time() - cpu
    return {"wall": wall, "cpu": spent, "before": before, "peak": _megabytes("VmHWM"), "half": 0.0}


def _megabytes(of: str) -> float:
    """Of this program alone: what a child inherits of `ru_maxrss` is its parent's."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in status.splitlines() if line.startswith(f"{of}:"))


@contextmanager
def _receiver() -> Iterator[int]:
    port = free_port()
    with subprocess.Popen([sys.executable, "-m", "bench.otlp_cost", "sink", str(port)]) as process:
        try:
            time.sleep(2)
            yield port
        finally:
            process.terminate()


async def _sink(port: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.lower().split(b"\r\n")
                (length,) = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
                await reader.readexactly(length)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
