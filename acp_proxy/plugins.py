"""Interceptors of other packages, found through the entry-point group `acp_proxy.interceptors`.

An entry point names a class, or anything that returns an `Interceptor` when called without arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from acp_proxy.interceptor import Interceptor
from acp_proxy.system.entry_points import GROUP, any_entry_points

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def installed(log: Callable[..., None], path: Sequence[str] | None = None) -> list[Interceptor]:
    """One instance of each; those that cannot be loaded are logged and skipped. `path` is by default `sys.path`."""
    loaded = []
    for name, one in found(path):
        if isinstance(one, Interceptor):
            loaded.append(one)
        else:
            log("error", "interceptor not loaded", name=name, error=one)
    return loaded


def found(path: Sequence[str] | None = None) -> Iterator[tuple[str, Interceptor | str]]:
    """The name of each, with one of it; where it cannot be loaded, with why."""
    searched = list(sys.path if path is None else path)
    if not any_entry_points(tuple(searched)):
        return  # the usual case; importing importlib.metadata alone takes 40 ms
    for entry in _entry_points(searched):
        try:
            one = entry.load()()
        except (Exception, SystemExit) as error:  # another's fault must not keep the agent from its editor
            yield entry.name, f"{type(error).__name__}: {error}"
            continue
        yield entry.name, one if isinstance(one, Interceptor) else "it is no acp_proxy.interceptor.Interceptor"


def _entry_points(path: list[str]) -> list[EntryPoint]:
    """The entry points of the group, each once even if its package is on the path twice."""
    from importlib.metadata import distributions

    found: dict[EntryPoint, None] = {}
    for distribution in distributions(path=path):
        with suppress(Exception):  # as above: its list may be no list, and it may have nothing to do with us
            found |= dict.fromkeys(distribution.entry_points.select(group=GROUP))
    return list(found)
