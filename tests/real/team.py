"""A team of recorded agents on one ledger: the installed command in front of each, and `acp-proxy serve` for all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.daemons import SECONDS, started
from harness.ports import free_port
from harness.recordings import TRANSCRIPTS
from tests.replay import play

COMMAND = str(Path(sys.executable).parent / "acp-proxy")
_PATIENT = 'ledger.admission_timeout = "30s"\n'  # whatever else the machine does, no prompt is refused for that


@dataclass(frozen=True, slots=True)
class Team:
    """Its files are in `home`; `config` is TOML for all of its commands."""

    home: Path
    ledger: str
    config: str = ""

    def play(self, recording: str, *options: str) -> None:
        """One session, "agent-version/scene", through `acp-proxy run OPTIONS`."""
        words = [*self._words("run"), "--no-summary", *options, "--"]
        replay = play(words, TRANSCRIPTS / f"{recording}.jsonl", environment=self._environment(), seconds=SECONDS)
        assert (replay.status, replay.client.missing, replay.agent.missing) == (0, [], []), replay

    def report(self, by: str) -> dict[str, Any]:
        return self._json("report", "--by", by, "--tz", "UTC")

    def copy_from(self, ledger: str) -> None:
        """All rows of another ledger into the team's."""
        command = [*self._words("ledger", "copy"), "--from", ledger]
        subprocess.run(command, env=self._environment(), capture_output=True, timeout=SECONDS, check=True)

    def budgets(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._json("budget", "list")["budgets"]
        return found

    @contextmanager
    def served(self, *options: str) -> Iterator[int]:
        """`acp-proxy serve` until the end of the block; yields its port."""
        port = free_port()
        environ = (f"{name}={value}" for name, value in self._environment().items())
        command = ["env", "-i", *environ, *self._words("serve"), "--port", str(port), *options]
        with started(command, f"http://127.0.0.1:{port}/healthz", self.home / "serve.log"):
            yield port

    def _json(self, *words: str) -> dict[str, Any]:
        command = [*self._words(*words), "--json"]
        environ = self._environment()
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def _words(self, *command: str) -> list[str]:
        config = self.home / "config.toml"
        config.write_text(f"{_PATIENT}{self.config}")
        return [COMMAND, *command, "--config", str(config), "--ledger", self.ledger]

    def _environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "USER": "alice"}
