"""acp-proxy that gives agent and ledger a minute at its end: `patient.py run … -- AGENT`.

As it is, it sends SIGTERM to an agent that has not left after 2 s, and has a summary to show after 0.4 s. On a slow
machine the agent is still at its last words then, and the ledger not even open: rows are found in the journal by
whoever comes next, but counts are lost.
"""

from __future__ import annotations

import runpy
from typing import Any, cast

from acp_proxy.interceptors import recorder
from acp_proxy.relay import Relay

recorder._FLUSH = 60.0
cast(Any, Relay.__init__).__kwdefaults__["grace"] = 60.0
runpy.run_module("acp_proxy", run_name="__main__", alter_sys=True)
