"""A price that changes in the middle of a window: what is settled keeps its cost, and the budget adds both up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PYTHON = [sys.executable, "-m", "acp_proxy"]
PROMPT = {"sessionId": "demo-session", "prompt": [{"type": "text", "text": "hi"}]}
MESSAGES = [
    ("initialize", {"protocolVersion": 1}),
    ("session/new", {"cwd": "/", "mcpServers": []}),
    ("session/prompt", PROMPT),
]
CONFIG = """
[ledger]
admission_timeout = "30s"
[[budget]]
name = "month"
window = "total"
limit = {{ amount = "100", currency = "USD" }}

[prices."claude-sonnet-5"]
input = "{price}"
cached_read = "{price}"
cached_write = "{price}"
output = "{price}"
"""


def answer(home: Path, *arguments: str, said: str = "") -> str:
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC"}
    return subprocess.run(
        [*PYTHON, *arguments], input=said, env=environ, capture_output=True, text=True, check=True, timeout=60
    ).stdout


def turn(home: Path, price: str) -> None:
    """One turn of 12,338 tokens, each for a millionth of `price`."""
    file = home / ".config/acp-proxy/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(CONFIG.format(price=price))
    said = "".join(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
        for number, (method, params) in enumerate(MESSAGES)
    )
    answer(home, "run", "--no-summary", "--", sys.executable, "-m", "acp_proxy.demo_agent", said=said)


def test_a_settled_row_is_never_priced_again(tmp_path: Path) -> None:
    turn(tmp_path, "1")
    turn(tmp_path, "10")
    rows: list[Any] = json.loads(answer(tmp_path, "report", "--by", "turn", "--json"))["rows"]
    assert sorted(row["cost"]["USD"] for row in rows) == ["0.012338", "0.12338"]
    (budget,) = json.loads(answer(tmp_path, "budget", "list", "--json"))["budgets"]
    assert budget["spent"] == "0.135718"
    answer(tmp_path, "doctor", "--rebuild")
    (budget,) = json.loads(answer(tmp_path, "budget", "list", "--json"))["budgets"]
    assert budget["spent"] == "0.135718"
