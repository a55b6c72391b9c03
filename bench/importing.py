"""`python -m bench.importing [MB]`: time and memory of `acp-proxy import`, beside those of ccusage on the same files.

The files are a recorded session of Claude Code, repeated with fresh ids and other days. Each program reads them twice:
nothing was read before the first time, and nothing has changed before the second. ccusage is pinned in CCUSAGE.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

RECORDED = Path(__file__).parent.parent / "tests/books/data/claude"
_DAYS = 90
CCUSAGE = "ccusage@20.0.24"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench-import", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("megabytes", nargs="?", type=int, default=1000)
    megabytes = parser.parse_args().megabytes
    with tempfile.TemporaryDirectory(prefix="bench-import-") as place:
        home = Path(place)
        made = _make(home, megabytes * 1_000_000)
        _say(f"{made / 1e6:,.0f} MB")
        environ = {"HOME": place, "PATH": os.environ["PATH"]}
        peer = [*_ccusage(home / "npm"), "claude", "daily", "--json", "--offline"]
        ours = [sys.executable, "-m", "acp_proxy", "import", "claude-code", "--json"]
        theirs = [_timed("ccusage", peer, environ) for _ in range(2)]
        mine = [_timed("acp-proxy", ours, environ) for _ in range(2)]
        _say(f"first: ccusage takes {theirs[0] / mine[0]:.2f} x the time of acp-proxy")
        _say(f"again: ccusage takes {theirs[1] / mine[1]:.2f} x, and acp-proxy {mine[1] / mine[0]:.3f} x its first")
    return 0


def _make(home: Path, wanted: int) -> int:
    """How many bytes there are."""
    recorded = max(RECORDED.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    text = recorded.read_text(encoding="utf-8")
    session = json.loads(text.partition("\n")[0])["sessionId"]
    made = number = 0
    while made < wanted:
        number += 1
        day = datetime.now(UTC) - timedelta(days=1 + number % _DAYS, seconds=number)
        new = text.replace(session, str(UUID(int=number, version=4))).replace('"msg_', f'"msg_{number}_')
        new = re.sub(r'"(req_|requestRef":"\w*)', rf'"\g<1>{number}', new)
        new = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", f"{day:%Y-%m-%dT%H:%M}", new)
        path = home / f".claude/projects/-work-{number % 20}/{UUID(int=number, version=4)}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        made += path.write_bytes(new.encode())
    return made


def _ccusage(directory: Path) -> list[str]:
    options = ["--silent", "--no-audit", "--no-fund", "--prefix", str(directory)]
    subprocess.run(["npm", "install", *options, CCUSAGE], check=True)
    version = json.loads((directory / "node_modules/ccusage/package.json").read_text())["version"]
    _say(f"ccusage {version}")
    return [str(directory / "node_modules/.bin/ccusage")]


def _timed(name: str, command: list[str], environ: dict[str, str]) -> float:
    """Seconds."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, env=environ, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - began
        output.seek(0)
        said = output.read()
    if process.returncode:
        raise SystemExit(f"{name} ended with status {process.returncode}")
    _say(f"{name}: {took:.2f} s, {_cpu(used):.2f} s of CPU, {used.ru_maxrss / 1000:,.0f} MB at most; {_tokens(said)}")
    return took


def _cpu(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def _tokens(said: bytes) -> str:
    answer = json.loads(said)
    if "agents" in answer:
        return f"{sum(agent['total'] for agent in answer['agents']):,} tokens"
    return f"{answer['totals']['totalTokens']:,} tokens"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
