"""A process that has as many threads as it may have."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_more_threads() -> Iterator[None]:
    """None can be started meanwhile: each would need a stack that no machine has room for."""
    usual = threading.stack_size(1 << 46)
    try:
        yield
    finally:
        threading.stack_size(usual)
