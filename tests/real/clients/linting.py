"""Reports of acplint, a checker that starts an agent by its command; without the times, so that two can be compared.

acplint 0.1.0 knows an early form of the protocol and fails every agent somewhere. What it says is not judged here, only
whether it says the same of an agent behind acp-proxy.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ACPLINT = str(Path(sys.executable).parent / "acplint")
SECONDS = 150
QUICK = (
    "initialization",
    "authentication",
    "session_lifecycle",
    "streaming",
    "session_modes",
    "config_options",
    "cancel",
    "stress",
    "schema_validation",
)
# Each of these waits for seconds after its prompts, whatever comes.
SLOW = ("tool_calls", "permissions", "file_operations", "terminals", "plans")


async def report(
    agent: Sequence[str], environment: Mapping[str, str], output: Path, categories: Sequence[str] = QUICK
) -> dict[str, Any]:
    """acplint's JSON; `output` is a file to write it to. No word of the command may have blanks in it."""
    command, *arguments = agent
    process = await asyncio.create_subprocess_exec(
        ACPLINT,
        *("--agent", command, f"--agent-args={' '.join(arguments)}"),
        *("--categories", *categories),
        *("--cwd", str(output.parent), "--output", "json", "--output-file", str(output)),
        stdin=asyncio.subprocess.DEVNULL,
        env=environment,
    )
    async with asyncio.timeout(SECONDS):
        status = await process.wait()
    return _without_times(output) | {"status": status}


def verdicts(said: dict[str, Any]) -> dict[str, Any]:
    """Without the details, which count every update."""
    results = [{name: value for name, value in result.items() if name != "details"} for result in said["results"]]
    return said | {"results": results}


def details(said: dict[str, Any], test: str) -> Any:
    return next(result["details"] for result in said["results"] if result["name"] == test)


def _without_times(output: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(output.read_text())
    for result in said["results"]:
        del result["duration_ms"]
    return said
