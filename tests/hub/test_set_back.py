"""`acp-proxy hub` on a file that is replaced by its backup, as whoever runs it sees it."""

from __future__ import annotations

import shutil
import time
from contextlib import closing
from pathlib import Path
from urllib.request import Request, urlopen

from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.hub.ledger import HubLedger
from harness.rows import row
from tests.hub.process import hub
from tests.ledger.warned import Warnings

SETTINGS = '[database]\nurl = "sqlite:///{}/hub.db"\n'


async def test_a_hub_gets_back_what_came_after_its_backup_and_counts_it_in_its_metrics(tmp_path: Path) -> None:
    file, backup = tmp_path / "hub.db", tmp_path / "backup.db"
    text, warnings, token = SETTINGS.format(tmp_path), Warnings(), ""

    def opened(url: str) -> HubLedger:
        return HubLedger(
            url,
            time.time_ns,
            patience=20,
            warn=warnings,
            journals=[tmp_path / "journal"],
            authorization=lambda _: f"Bearer {token}",
        )

    async with hub(tmp_path, text) as (process, _, first):
        token = first
        process.terminate()
        await process.wait()
    shutil.copy(file, backup)
    async with hub(tmp_path, text, "hub at") as (process, url, _):
        port = url.rpartition(":")[2]
        with closing(opened(url)) as ledger:
            assert ledger.append([row(id="1"), row(id="2")]) == 2
        process.terminate()
        await process.wait()
    _put_back(backup, file)
    async with hub(tmp_path, text, "hub at", port=port) as (_, url, _):
        with closing(opened(url)) as ledger:
            assert list(ledger.rows(Query())) == []
            ledger.settle_dead(time.time_ns())
            assert [each.entry.id for each in ledger.rows(Query())] == ["1", "2"]
        assert warnings.events == ["ledger.went_back"]
        metrics = _got(f"{url}/metrics", token)
        assert "acp_proxy_ledger_restored_rows_total 2" in metrics
    with closing(open_ledger(f"sqlite:///{file}", journals=())) as kept:
        assert kept.restored("default").rows == 2


def _put_back(backup: Path, file: Path) -> None:
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()
    shutil.copy(backup, file)


def _got(url: str, token: str) -> str:
    with urlopen(Request(url, headers={"Authorization": f"Bearer {token}"}), timeout=20) as answer:  # noqa: S310
        return bytes(answer.read()).decode()
