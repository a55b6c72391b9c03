"""`serve` locked up as in image, pod and unit: it can write nothing but its home, and has no capability."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from harness.daemons import started
from harness.ports import free_port
from harness.postgres import running

PROXY = str(Path(sys.executable).parent / "acp-proxy")
LOCKED = """
set -e
mount -o remount,bind,ro /
mount -t tmpfs tmpfs "$1"
cd "$1" && shift
if touch /written 2>/dev/null; then exit 9; fi
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""


def test_it_serves_metrics_from_a_root_that_is_read_only(tmp_path: Path) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("needs the right to mount")
    (home := tmp_path / "home").mkdir()
    token = tmp_path / "token"
    token.write_text("one-of-the-team\n")
    token.chmod(0o440)
    port = free_port()
    with running() as server:
        serve = [PROXY, "serve", "--host", "0.0.0.0", "--port", str(port), "--token-file", str(token)]
        serve += ["--ledger", server.create("ledger")]
        environ = ["env", "-i", f"HOME={home}", f"PATH={os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE=1"]
        command = ["unshare", "--mount", "sh", "-c", LOCKED, "sh", str(home), *environ, *serve]
        with started(command, f"http://127.0.0.1:{port}/healthz", tmp_path / "log"):
            asked = Request(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": "Bearer one-of-the-team"})
            with urlopen(asked, timeout=60) as answer:  # noqa: S310  loopback
                assert b"\nacp_proxy_ledger_up 1\n" in answer.read()
