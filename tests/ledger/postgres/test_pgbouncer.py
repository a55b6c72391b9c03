"""A ledger behind a real PgBouncer that pools by transaction: whoever comes next gets any connection of the server."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.doctor.servers import server_findings
from acp_proxy.ledger import Query, open_ledger
from harness.pooler import pooler
from harness.postgres import Server
from harness.rows import NOON
from tests.ledger.processes import Process

pytestmark = pytest.mark.needs("pgbouncer")

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


def test_doctor_says_that_there_is_a_pooler_and_what_to_set(postgres: Server, tmp_path: Path) -> None:
    url = postgres.create("pooled")
    with (
        closing(open_ledger(url, journals=())) as direct,
        pooler(postgres, tmp_path, 1) as port,
        closing(open_ledger(url.replace(f":{postgres.port}/", f":{port}/"), journals=())) as pooled,
    ):
        told = [" ".join(text for text, _ in server_findings(each, "default", NOON)) for each in (direct, pooled)]
    assert ["pooler: " in each for each in told] == [False, True]
    assert "server_login_retry = 1" in told[1]
