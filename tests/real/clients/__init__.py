"""Other people's clients, agents and checkers, each run twice: straight at an agent, and through acp-proxy."""

from __future__ import annotations

from pathlib import Path

# To import the SDK takes a second, in each worker that only collects what it will not run.
SDK_AGENT = str(Path(__file__).with_name("sdk_agent.py"))
