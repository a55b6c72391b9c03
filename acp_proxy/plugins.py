"""Interceptors of other packages, found through the entry-point group `acp_proxy.interceptors`.

An entry point names a class, or anything that returns an `Interceptor` when called without arguments.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from acp_proxy.dispatch.accounting import Log
from acp_proxy.interceptor import Interceptor

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "acp_proxy.interceptors"


def installed(log: Log, path: Sequence[str] | None = None) -> list[Interceptor]:
    """One of each; what cannot be loaded is logged and left out. `path` is searched, by default `sys.path`."""
    searched = list(sys.path if path is None else path)
    if not any(_mentioned(directory) for directory in searched):
        return []  # the usual case, told in 2 ms; importing importlib.metadata alone takes 40
    return list(_loaded(log, searched))


def _mentioned(directory: str) -> bool:
    """Whether a distribution installed there has an entry point of the group."""
    try:
        entries = [
            entry.path for entry in os.scandir(directory or ".") if entry.name.endswith((".dist-info", ".egg-info"))
        ]
    except OSError:
        return False
    for entry in entries:
        try:
            with open(f"{entry}/entry_points.txt", "rb") as file:  # noqa: PTH123  pathlib is not needed elsewhere
                if GROUP.encode() in file.read():
                    return True
        except OSError:
            continue
    return False


def _loaded(log: Log, path: list[str]) -> Iterator[Interceptor]:
    for entry in _entry_points(path):
        try:
            interceptor = entry.load()()
        except (Exception, SystemExit) as error:  # another's fault must not keep the agent from its editor
            log("error", "interceptor not loaded", name=entry.name, error=f"{type(error).__name__}: {error}")
            continue
        if isinstance(interceptor, Interceptor):
            yield interceptor
        else:
            no_interceptor = "it is no acp_proxy.interceptor.Interceptor"
            log("error", "interceptor not loaded", name=entry.name, error=no_interceptor)


def _entry_points(path: list[str]) -> list[EntryPoint]:
    """Those of the group, each once though its package may be on the path twice."""
    from importlib.metadata import distributions

    found: dict[EntryPoint, None] = {}
    for distribution in distributions(path=path):
        with suppress(Exception):  # as above: its list may be no list, and it may have nothing to do with us
            found |= dict.fromkeys(distribution.entry_points.select(group=GROUP))
    return list(found)
