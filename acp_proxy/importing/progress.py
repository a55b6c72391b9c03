"""A bar on a terminal while books are read; nothing where stderr is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from acp_proxy.importing.command import Progress


@contextmanager
def bar(stream: TextIO) -> Iterator[Progress]:
    if not stream.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(file=stream)
    with Bar(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=console, transient=True
    ) as bars:
        tasks = {}

        def progress(agent: str, done: int, files: int) -> None:
            if agent not in tasks:
                tasks[agent] = bars.add_task(agent, total=files)
            bars.update(tasks[agent], completed=done)

        yield progress
