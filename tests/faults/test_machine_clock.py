"""The machine's clock is set while a turn runs, for the relay and for every command; waits are as long as ever.

To programs a machine that wakes up after days of sleep looks the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.editor import Editor, proxy

DAY = 24 * 3600
CONFIG = """
[ledger]
admission_timeout = "20s"
on_unavailable = "closed"
""" + "".join(
    f'[[budget]]\nname = "{window}"\nwindow = "{window}"\nlimit = {{ amount = "10", currency = "USD" }}\nhold = "1"\n'
    for window in ("day", "total")
)


class Machine:
    """Its clock can be set; at first it is noon."""

    def __init__(self, home: Path) -> None:
        (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")  # of the architecture that this is
        self._noon = DAY // 2 - int(time.time()) % DAY
        self._clock = home / "clock"
        self.environ = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "USER": "alice",
            "TZ": "UTC",
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        (home / ".config/acp-proxy").mkdir(parents=True)
        (home / ".config/acp-proxy/config.toml").write_text(CONFIG)
        self.set_clock(0)

    def set_clock(self, days: int) -> None:
        """So far from the first noon; in one step, for whoever reads it must never find it empty."""
        new = self._clock.with_suffix(".new")
        new.write_text(f"{self._noon + days * DAY:+d}s")
        new.rename(self._clock)

    def asked(self, *command: str) -> Any:
        """What a command says in JSON."""
        said = subprocess.run(
            [sys.executable, "-m", "acp_proxy", *command], env=self.environ, capture_output=True, text=True, check=False
        )
        assert (said.returncode, said.stderr) == (0, "")
        return json.loads(said.stdout)

    def spent(self) -> dict[str, tuple[str, str]]:
        """By budget, with what is held."""
        budgets = self.asked("budget", "list", "--json")["budgets"]
        return {each["name"]: (each["spent"], each["held"]) for each in budgets}

    def today(self) -> Any:
        return self.asked("status", "--format", "json")["today"]["cost"]


@pytest.mark.needs("faketime")
@pytest.mark.parametrize(("days", "first", "both"), [(1, "0.25", "0.75"), (-1, "0", "0.5"), (3, "0.25", "0.75")])
def test_a_turn_over_which_the_clock_is_set_is_charged_once_at_its_cost(
    days: int, first: str, both: str, tmp_path: Path
) -> None:
    """Somebody who asks in the turn, before its proxy has said again that it lives, leaves it alone.

    `first` and `both` are of this day: where the clock was set back, the first turn was yesterday's.
    """
    machine = Machine(tmp_path)
    with proxy(machine.environ) as process:
        editor = Editor(process)
        editor.prompt("hang 0.25")
        machine.set_clock(days)
        assert machine.today() == {}
        assert [spent for spent, _ in machine.spent().values()] == ["0", "0"]
        editor.end_turn()
        machine.set_clock(0)
        editor.prompt("hang 0.75")  # in all
        assert machine.spent() == {"day": (first, "1"), "total": ("0.25", "1")}
        editor.end_turn()
        assert editor.leave() == 0
    rows = sorted(machine.asked("report", "--by", "turn", "--json")["rows"], key=lambda row: row["started_at"])
    assert [(row["cost"], row["cost_source"]) for row in rows] == [({"USD": cost}, "agent") for cost in ("0.25", "0.5")]
    assert {row["started_at"][11:13] for row in rows} == {"12"}
    assert machine.spent() == {"day": (both, "0"), "total": ("0.75", "0")}
    assert machine.today() == {"USD": both}
