"""acp-proxy that waits at its end until the ledger has everything: `python -m tests.agents.patient run … -- AGENT`.

As it is, it has a summary to show, and waits for 0.4 s. On a slow machine the ledger is not even open then: rows are
found in the journal by whoever comes next, but counts are lost.
"""

from __future__ import annotations

import runpy

from acp_proxy.interceptors import recorder

recorder._FLUSH = 60.0
runpy.run_module("acp_proxy", run_name="__main__", alter_sys=True)
