"""`python -m bench.bills [ROWS]`: time of `acp-proxy reconcile` for bills of so many rows, a million unless it is said.

The rows are of sixty days, six models and fifty users. The ledger has a row of each day.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from acp_proxy.core.entry import UsageLine
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import open_ledger
from harness.rows import row

_FIRST = date(2026, 9, 1)
_DAYS, _USERS = 60, 50
_MODELS = {
    "csv": ("claude-opus-5-5", "claude-sonnet-5", "claude-haiku-4-5", "gpt-5.5", "gpt-5-mini", "gemini-3.1-pro"),
    "anthropic": ("claude-opus-5-5", "claude-sonnet-5", "claude-haiku-4-5", "claude-opus-5", "a-new-model", "another"),
    "openai": ("gpt-5.5", "gpt-5-mini", "gpt-5", "gpt-6-codex", "a-new-model", "another"),
}


def main(arguments: list[str]) -> None:
    rows = int(arguments[0]) if arguments else 1_000_000
    with tempfile.TemporaryDirectory(prefix="bench-bills-") as place:
        home = Path(place)
        ledger = home / "ledger.db"
        _booked(ledger)
        for form, write in (("csv", _csv), ("anthropic", _anthropic), ("openai", _openai)):
            file = home / f"bill.{'csv' if form == 'csv' else 'json'}"
            with file.open("w", encoding="utf-8") as opened:
                opened.writelines(write(rows))
            _measure(form, rows, file, ledger)
    load = ", ".join(f"{each:.0f}" for each in os.getloadavg())
    _say(f"load {load} on {os.cpu_count()} cores at the end")


def _measure(form: str, rows: int, file: Path, ledger: Path) -> None:
    command = [sys.executable, "-m", "acp_proxy", "reconcile", form, str(file), "--ledger", str(ledger), "--json"]
    began = time.monotonic()
    with subprocess.Popen(command, env={"HOME": str(file.parent), "PATH": os.environ["PATH"]}, stdout=-1) as process:
        assert process.stdout  # noqa: S101  it is a pipe
        said = json.loads(process.stdout.read())
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    took = time.monotonic() - began
    billed = said["total"]["bill"]["tokens"]["total"]
    size, spent = f"{file.stat().st_size / 1e6:,.0f} MB", used.ru_utime + used.ru_stime
    _say(f"{form:<10}{rows:>9,} rows, {size}: {took:.1f} s, {spent:.1f} s of CPU; {billed:,} tokens")


def _booked(ledger: Path) -> None:
    with closing(open_ledger(f"sqlite:///{ledger}", journals=())) as opened:
        for day in range(_DAYS):
            noon = datetime.combine(_FIRST + timedelta(day), datetime.min.time(), UTC).replace(hour=12)
            used = UsageLine("claude-sonnet-5", Usage(input=1000, output=10))
            opened.append([row(used, id=f"row-{day}", at=int(noon.timestamp()) * 10**9)])


def _drawn(form: str, rows: int) -> Iterator[tuple[int, list[tuple[str, str, int, int]]]]:
    """Of each day model, user, input and output."""
    chance = random.Random(1)
    each, more = divmod(rows, _DAYS)
    for day in range(_DAYS):
        yield (
            day,
            [
                (chance.choice(_MODELS[form]), f"user-{chance.randrange(_USERS)}", chance.randrange(9999), 77)
                for _ in range(each + (day < more))
            ],
        )


def _csv(rows: int) -> Iterator[str]:
    yield "date,model,user,input,output,cost,currency\n"
    for day, found in _drawn("csv", rows):
        for model, user, tokens, output in found:
            yield f"{_FIRST + timedelta(day)},{model},{user},{tokens},{output},0.{tokens:06},USD\n"


def _anthropic(rows: int) -> Iterator[str]:
    yield '{"has_more": false, "data": ['
    for day, found in _drawn("anthropic", rows):
        start, end = (f"{_FIRST + timedelta(each)}T00:00:00Z" for each in (day, day + 1))
        results = ",".join(
            f'{{"model": "{model}", "account_id": "{user}", '
            f'"uncached_input_tokens": {tokens}, "output_tokens": {output}}}'
            for model, user, tokens, output in found
        )
        yield f'{"," if day else ""}{{"starting_at": "{start}", "ending_at": "{end}", "results": [{results}]}}'
    yield "]}"


def _openai(rows: int) -> Iterator[str]:
    epoch = datetime.combine(_FIRST, datetime.min.time(), UTC)
    yield '{"has_more": false, "data": ['
    for day, found in _drawn("openai", rows):
        start = int((epoch + timedelta(day)).timestamp())
        results = ",".join(
            f'{{"model": "{model}", "user_id": "{user}", "input_tokens": {tokens}, "output_tokens": {output}}}'
            for model, user, tokens, output in found
        )
        yield f'{"," if day else ""}{{"start_time": {start}, "end_time": {start + 86_400}, "results": [{results}]}}'
    yield "]}"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
