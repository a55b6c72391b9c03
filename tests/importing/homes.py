"""Homes with the books of recorded agents in them, and an import from there into a ledger of its own."""

from __future__ import annotations

import shutil
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from acp_proxy.config import load
from acp_proxy.core.entry import IMPORT
from acp_proxy.importing import Tally, command
from acp_proxy.ledger import Query, Row, open_ledger

DATA = Path(__file__).parent.parent / "books/data"
A_YEAR = 365 * 86_400 * 10**9


@dataclass(frozen=True)
class Home:
    """Of one user on one machine; `ledger` may be shared with others."""

    path: Path
    ledger: Path

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.path), "PATH": "/usr/bin:/bin", "USER": "alice"}

    @property
    def url(self) -> str:
        return f"sqlite:///{self.ledger}"

    @property
    def journals(self) -> Path:
        return self.path / ".local/state/acp-proxy/journal"

    def put(self, agent: str, recording: str) -> None:
        """What a recorded agent has written, beside what is there."""
        shutil.copytree(DATA / agent / recording / "home", self.path, dirs_exist_ok=True)

    def imports(
        self, *agents: str, since: int | None = None, dry_run: bool = False, now: int | None = None
    ) -> dict[str, Tally]:
        """Long after all of it was recorded."""
        asked = command.Asked(agents, since, dry_run)
        config = load({"ledger": self.url}, self.environ)
        return command.main(asked, config, self.environ, time.time_ns() + A_YEAR if now is None else now)

    def append(self, *rows: Row) -> None:
        with closing(open_ledger(self.url, journals=())) as ledger:
            ledger.append(rows)

    def rows(self) -> list[Row]:
        """Those of imports."""
        with closing(open_ledger(self.url, journals=())) as ledger:
            return [row for row in ledger.rows(Query()) if row.origin.client == IMPORT]
