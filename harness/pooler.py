"""A PgBouncer of our own that pools by transaction: whoever comes next gets any connection of the server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.daemons import until
from harness.ports import free_port
from harness.postgres import Server, as_somebody

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
