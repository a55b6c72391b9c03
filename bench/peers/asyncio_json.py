"""The relay that one writes first: asyncio streams, readline, and json both ways."""

import asyncio
import json
import sys

LIMIT = 1 << 30


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(json.dumps(json.loads(line), separators=(",", ":")).encode() + b"\n")
        await writer.drain()
    writer.close()


async def main() -> int:
    command = sys.argv[sys.argv.index("--") + 1 :]
    pipe = asyncio.subprocess.PIPE
    agent = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=LIMIT)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    if agent.stdin is None or agent.stdout is None:
        return 1
    up = asyncio.create_task(pump(reader, agent.stdin))
    await pump(agent.stdout, writer)
    up.cancel()
    return await agent.wait()


sys.exit(asyncio.run(main()))
