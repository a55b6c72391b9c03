"""`python -m bench.hub_idle PORT < TOKENS`: as many proxies that have signed in and rest, in one process.

Each asks once with its token, and keeps its connection. It says when all have, and ends when its stdin does.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Sequence

_AT_ONCE = 100  # connections that are made


async def _rest(port: int, tokens: Sequence[str]) -> None:
    some = asyncio.Semaphore(_AT_ONCE)

    async def signed_in(token: str) -> asyncio.StreamWriter:
        async with some:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
            writer.write(f"GET /v1/clock HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"hub_idle: {head[:30]!r}")
            return writer

    writers = await asyncio.gather(*map(signed_in, tokens))
    sys.stdout.write(f"{len(writers)}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    sys.stdout.write(f"{sum(not writer.is_closing() for writer in writers)}\n")


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    tokens = list(iter(lambda: sys.stdin.readline().strip(), ""))
    asyncio.run(_rest(int(sys.argv[1]), tokens))


if __name__ == "__main__":
    main()
