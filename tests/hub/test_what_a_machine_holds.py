"""What a developer's machine has of a hub, searched: its files, and the memory of its proxy."""

from __future__ import annotations

import os
import re
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.lease import Terms
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub.policy import Changes
from harness import hub
from harness.daemons import until
from harness.postgres import Server
from harness.rows import ALICE, line, row
from tests.hub.laptops import POOL, editor, ledger_of, lent

PASSWORD = "b7Qx-password-of-the-database"
OTHER = "rosalind.7731@example.com"
PROJECT = "project-of-another-5512"
COST = "7319.824517"  # of one turn of another
TOKEN = "acp_token-of-ann-4c1d"  # what is searched for is found where it is
PEOPLE = {
    "root": Identity("root", "default", None, "administrator"),
    TOKEN: Identity("ann", "default", "core", "developer"),
}


def memory(pid: int) -> bytes:
    """All that a process has written to."""
    found = bytearray()
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as mem:
        for each in maps:
            start, end, rights = re.match(r"(\w+)-(\w+) (\S+)", each).groups()  # type: ignore[union-attr]
            if rights.startswith("rw") and "[v" not in each:
                mem.seek(int(start, 16))
                found += mem.read(int(end, 16) - int(start, 16))
    return bytes(found)


def files(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc")
def test_no_password_of_the_database_and_nothing_of_another_user_is_on_a_developers_machine(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", "root")
    url = re.sub(r"//[^@]*@", f"//owner:{PASSWORD}@", postgres.create("searched"))
    theirs = replace(ALICE, user=OTHER, project=PROJECT, host="machine-of-another")
    with closing(open_ledger(url, journals=())) as kept:
        kept.append([row(line(cost=COST), origin=theirs)])
    home = tmp_path / "laptop"
    with hub.running(url, PEOPLE, lease=Terms(share=20)) as at:
        with closing(ledger_of(at, "root")) as ledger:
            ledger.change_policy(Changes({"pool": dict(POOL), "theirs": _budget_of_another()}))
        with editor(home, at, TOKEN) as ann:
            for _ in range(3):
                assert "Not sent" not in ann.prompt()
            until(lambda: lent(home), "something is lent")
            held = {"files": files(home), "memory": memory(ann.pid)}
    nano = COST.replace(".", "") + "000"
    assert TOKEN.encode() in held["memory"]
    assert b'"lease-' in held["files"]
    for where, data in held.items():
        for what in (PASSWORD, "postgresql://owner", OTHER, PROJECT, "machine-of-another", COST, nano):
            assert what.encode() not in data, (what, where)
        assert int(nano).to_bytes(8, "little") not in data, where
        assert int(nano).to_bytes(8, "big") not in data, where


def _budget_of_another() -> dict[str, object]:
    return {"window": "month", "limit": {"turns": 7}, "scope": {"user": OTHER}}


def test_what_is_written_into_memory_is_found_there() -> None:
    """Else the test above could not fail."""
    secret = f"{os.getpid()}-in-memory".encode()
    assert secret in memory(os.getpid())
