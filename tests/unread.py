"""A pipe that is full and that nobody reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO


@contextmanager
def full_pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Its two ends, the one to read from first. Writing waits until somebody reads."""
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb", buffering=0) as reader, os.fdopen(writes, "wb", buffering=0) as writer:
        os.set_blocking(writes, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writes, bytes(4096))
        os.set_blocking(writes, True)
        yield reader, writer
