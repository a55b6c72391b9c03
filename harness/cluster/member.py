"""One member of a cluster: a Patroni and its PostgreSQL, as it would be on a machine of its own."""

from __future__ import annotations

import json
import shutil
import signal
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cluster.programs import Program, descendants, signal_all
from harness.faults.link import Link


@dataclass(slots=True)
class Member:
    name: str
    api: int  # ports of loopback
    port: int
    link: Link  # by which other members reach its database
    program: Program
    data: Path

    def start(self) -> None:
        self.program.start()

    def kill(self) -> None:
        """kill -9 of Patroni and of all processes of the database at once, as when the machine loses power."""
        postmaster = self._postmaster()
        doomed = descendants(postmaster) if postmaster else []
        signal_all(doomed[:1], signal.SIGKILL)
        self.program.kill()
        signal_all(doomed, signal.SIGKILL)

    def forget(self) -> None:
        """Its data, as of a machine that does not come back."""
        shutil.rmtree(self.data, ignore_errors=True)

    @property
    def is_primary(self) -> bool:
        return self._answers("/primary")

    @property
    def is_replica(self) -> bool:
        """One that streams: a member that was just started is a replica, too."""
        told = self.told()  # Debian's Patroni tells no state of replication
        return told.get("role") == "replica" and told.get("replication_state", "streaming") == "streaming"

    def told(self) -> dict[str, Any]:
        """What its Patroni says of it; empty where it says nothing."""
        with suppress(OSError, ValueError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.api}/patroni", timeout=2) as answer:
                found = json.load(answer)
            return found if found.get("state") == "running" else {}
        return {}

    def ask(self, path: str, **body: str) -> str:
        """Have its Patroni do something; what it answered."""
        url = f"http://127.0.0.1:{self.api}{path}"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  loopback
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.api}{path}", timeout=2) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
        except OSError:
            pass
        return False

    def _postmaster(self) -> int | None:
        with suppress(OSError, ValueError, IndexError):
            return int((self.data / "postmaster.pid").read_text().split()[0])
        return None
