"""A hub as people start it: a process with a hub.toml in a directory of its own."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


@asynccontextmanager
async def hub(
    directory: Path, text: str, ready: str = "doctor", *, port: str = "0", **environ: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str, str]]:
    """With its address and first token, which only the first at a database has."""
    file = directory / "hub.toml"
    file.write_text(text, encoding="utf-8")
    options = ("-m", "acp_proxy", "hub", "--port", port, "--config", str(file))
    around = {"HOME": str(directory), "PATH": "/usr/bin:/bin", **environ}
    process = await asyncio.create_subprocess_exec(sys.executable, *options, stderr=asyncio.subprocess.PIPE, env=around)
    try:
        assert process.stderr
        said = ""
        while ready not in said:
            line = (await process.stderr.readline()).decode()
            assert line, said
            said += line
        yield process, re.findall(r"hub at (\S+)", said)[0], "".join(re.findall(r"acp_[\w-]+", said)[:1])
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
