"""A server whose package is updated or removed while it runs goes on with what it has loaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from harness.rows import line, row
from tests.serve.house import Home, Served

ROOT = Path(__file__).parents[2]
BUDGETS = """
[[budget]]
name = "daily"
window = "day"
timezone = "Europe/Berlin"
limit = { amount = "30", currency = "USD" }

[[budget]]
name = "opus"
per = "user"
window = "rolling:24h"
limit = { turns = 3 }
scope = { model = "claude-opus*" }
"""
PATHS = (
    *("/", "/healthz", "/livez", "/metrics", "/api/budgets", "/api/live", "/api/sessions?find=x"),
    *(f"/api/spend?range={period}&tz=Asia/Kathmandu" for period in ("today", "last-month", "all")),
)


def test_all_is_answered_after_the_package_went(tmp_path: Path) -> None:
    home, site = Home(tmp_path), tmp_path / "site"
    home.configure(BUDGETS)
    home.append([row(line("claude-opus-5-5", "1"), at=time.time_ns() - 60 * 10**9)])
    shutil.copytree(ROOT / "acp_proxy", site / "acp_proxy", ignore=shutil.ignore_patterns("__pycache__"))
    environ = {**home.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "acp_proxy", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environ, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            served = Served(process.stderr.readline().split()[-1], process)
            shutil.rmtree(site)
            home.append([row(line("claude-opus-5-5", "2"), at=time.time_ns() - 30 * 10**9)])
            answers = [served.ask(path) for path in PATHS]
        finally:
            process.kill()
        said = process.stderr.read()
    assert [answer.body for answer in answers if answer.status != 200] == []
    assert b"acp_proxy_ledger_up 1" in answers[PATHS.index("/metrics")].body
    assert said == ""
