"""A ledger behind a real PgBouncer that pools by transaction: whoever comes next gets any connection of the server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from acp_proxy.ledger import Query, open_ledger
from harness.daemons import until
from harness.ports import free_port
from harness.postgres import Server, as_somebody
from tests.ledger.processes import Process

pytestmark = pytest.mark.needs("pgbouncer")

SETTINGS = """\
[databases]
* = host=127.0.0.1 port={server} user=owner
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
"""
PROCESSES, EACH = 3, 8  # how many write, and how many rows


@pytest.mark.parametrize(("connections", "option"), [(1, ""), (2, ""), (2, "?pgbouncer=true")])
def test_processes_that_share_connections_of_a_pooler_lose_no_row(
    postgres: Server, tmp_path: Path, connections: int, option: str
) -> None:
    url = postgres.create(f"pooled{connections}{len(option)}")
    open_ledger(url, journals=()).close()
    with pooler(postgres, tmp_path, connections) as port:
        pooled = url.replace(f":{postgres.port}/", f":{port}/") + option
        processes = [Process("append", pooled, str(number), str(EACH)) for number in range(PROCESSES)]
        for process in processes:
            process.until_ready()
        for process in processes:
            process.go_on()
        assert [process.wait() for process in processes] == [0] * PROCESSES
        with closing(open_ledger(pooled, journals=())) as ledger:
            found = [row.entry.id for row in ledger.rows(Query())]
    assert sorted(found) == sorted(f"{number}-{row}" for number in range(PROCESSES) for row in range(EACH))


@contextmanager
def pooler(server: Server, directory: Path, connections: int) -> Iterator[int]:
    """Its port on loopback."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, "pgbouncer is not installed; .ci/run installs what real tests need"
    port, log = free_port(), directory / "log"
    settings = SETTINGS.format(server=server.port, port=port, connections=connections)
    # It runs as somebody who may not look into the directories of tests.
    with TemporaryDirectory(prefix="acp-proxy-pgbouncer-") as readable, log.open("ab") as out:
        Path(readable).chmod(0o755)
        (file := Path(readable) / "pgbouncer.ini").write_text(settings)
        file.chmod(0o644)
        with subprocess.Popen([*as_somebody(), program, str(file)], stdout=out, stderr=out) as process:
            try:
                until(lambda: process.poll() is not None or "listening on" in log.read_text(), "PgBouncer listens")
                assert process.poll() is None, log.read_text()
                yield port
            finally:
                process.kill()
