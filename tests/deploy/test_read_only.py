"""`serve` and the hub locked up as in image, pod and unit: they write nothing but a home, and have no capability."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from harness.daemons import started
from harness.ports import free_port
from harness.postgres import running

DEPLOY = Path(__file__).parents[2] / "deploy"
PROXY = str(Path(sys.executable).parent / "acp-proxy")
LOCKED = """
set -e
mount -o remount,bind,ro /
mount -t tmpfs tmpfs "$1"
cd "$1" && shift
if touch /written 2>/dev/null; then exit 9; fi
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""


@pytest.fixture(autouse=True)
def may_mount() -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("needs the right to mount")


def test_it_serves_metrics_from_a_root_that_is_read_only(tmp_path: Path) -> None:
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


def test_a_hub_with_the_file_of_compose_needs_no_place_to_write(tmp_path: Path) -> None:
    """Its role is the one that the script for PostgreSQL's container makes."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "database_password").write_text("0a1b2c\n")
    port = free_port()
    with running() as server:
        environ = {"PATH": f"{server.program('psql').parent}:{os.environ['PATH']}", "PGHOST": "127.0.0.1"}
        environ |= {"PGPORT": str(server.port), "POSTGRES_USER": "owner", "POSTGRES_PASSWORD": "0a1b2c"}
        subprocess.run([DEPLOY / "postgres/roles.sh"], env=environ, check=True, timeout=60)
        text = (DEPLOY / "hub/hub.toml").read_text(encoding="utf-8").replace("/run/secrets", str(tmp_path))
        (tmp_path / "hub.toml").write_text(text.replace("@postgres/", f"@127.0.0.1:{server.port}/"))
        hub = [PROXY, "hub", "--config", str(tmp_path / "hub.toml"), "--port", str(port)]
        nowhere = ["env", "-i", "HOME=/nonexistent", f"PATH={os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE=1"]
        command = ["unshare", "--mount", "sh", "-c", LOCKED, "sh", str(tmp_path / "elsewhere"), *nowhere, *hub]
        with started(command, f"http://127.0.0.1:{port}/healthz", log := tmp_path / "log"):
            token = re.findall(r"ACP_PROXY_HUB_TOKEN=(\S+)", log.read_text())[0]
            asked = Request(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {token}"})
            with urlopen(asked, timeout=60) as answer:  # noqa: S310  loopback
                assert b"\nacp_proxy_ledger_up 1\n" in answer.read()
