"""Where a user's own files are, by the platform's rules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_proxy.status.cache import place
from acp_proxy.system.directories import default_ledger, state_directory


def test_a_relative_state_directory_does_not_count() -> None:
    assert state_directory({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == Path("/s/acp-proxy")
    assert state_directory({"HOME": "/h", "XDG_STATE_HOME": "s"}) == Path("/h/.local/state/acp-proxy")
    assert default_ledger({"HOME": "/h"}) == Path("/h/.local/state/acp-proxy/ledger.db")


@pytest.mark.parametrize(
    "environ", [{"HOME": "/h"}, {"HOME": "/h", "XDG_STATE_HOME": "s"}, {"XDG_STATE_HOME": "/s"}, {}]
)
def test_answers_are_kept_where_the_ledger_is(environ: dict[str, str]) -> None:
    assert Path(place("asked", environ)).parent == state_directory(environ) / "status"


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become somebody else")
def test_an_arbitrary_user_without_a_home_directory_has_the_root() -> None:
    code = """
import os
from acp_proxy.status.cache import place
from acp_proxy.system.directories import home
os.setuid(54321)
os.environ.clear()
print(home({}), home({"HOME": "/h"}), place("asked", {}).rpartition("/")[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("/ /h /.local/state/acp-proxy/status\n", "")
