#!/usr/bin/env bash
# agent-client-protocol 0.12.1 (the Python SDK of ACP): an agent that it starts gets six variables of the environment.
# Guess: `spawn_agent_process`, and `spawn_stdio_transport` beneath it, start a child as `subprocess` does: with the whole
# environment, or with `env` in its place.
# Seen: of the caller's variables only HOME, LOGNAME, PATH, SHELL, TERM and USER arrive, and `env` adds to these. API keys,
# proxies and CLAUDE_CONFIG_DIR are lost unless they are named, so the agent is signed out or keeps its files elsewhere.
source "$(dirname "$0")/common.sh"
install agent-client-protocol==0.12.1
cat >ask.py <<'END'
import asyncio, os, sys
from acp.transports import spawn_stdio_transport

child = "import os; print(*sorted(os.environ.keys() & {'ANTHROPIC_API_KEY', 'HTTPS_PROXY', 'HOME', 'NAMED'}))"

async def names():
    async with spawn_stdio_transport(sys.executable, "-c", child, env={"NAMED": "1"}) as (out, _, _):
        return (await out.read()).decode().strip()

os.environ |= {"ANTHROPIC_API_KEY": "key", "HTTPS_PROXY": "http://127.0.0.1:9", "HOME": "/"}
print(asyncio.run(names()))
END
expect 'of ANTHROPIC_API_KEY, HTTPS_PROXY, HOME and a named one, the agent gets' 'HOME NAMED' "$(python ask.py)"
