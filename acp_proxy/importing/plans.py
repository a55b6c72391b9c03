"""Windows of plans that agents write into their books: the last that is there, and how it came to that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from acp_proxy.books import codex_plans
from acp_proxy.books.agents import family
from acp_proxy.core.plans import PlanWindow, is_news
from acp_proxy.importing.shelves import SHELVES, BookUnreadableError, last_lines
from acp_proxy.ledger import Query
from acp_proxy.ledger.budgets import BudgetReader
from acp_proxy.system.directories import home

_FILES = 3  # the latest: what older ones tell is over
_MOST = 200  # news, the latest

_READERS: Mapping[str, Callable[[Iterable[bytes]], Iterator[PlanWindow]]] = {"codex": codex_plans.windows}


def windows_of_session(agent: str, session: str, environ: Mapping[str, str]) -> list[PlanWindow]:
    """The latest of each window, as the session's own book has it."""
    shelf = SHELVES[family(agent)]
    paths = [path for path in shelf.files(home(environ), environ) if session in path.name]
    return list({window.window: window for window in windows_in(agent, paths)}.values())


def windows_in(agent: str, paths: Iterable[Path]) -> list[PlanWindow]:
    """What was news, by time, in the files that were written last."""
    read = _READERS.get(family(agent))
    if read is None:
        return []
    found = [window for path in _latest(paths) for window in _read(path, read)]
    return list(_news(sorted(found, key=lambda window: window.seen_at)))[-_MOST:]


def relayed_as(agent: str, ledger: BudgetReader, organisation: str, user: str) -> str:
    """The name that a plan of this user's agent has in relays: as they told of it, else as they relayed the agent.

    The name of its books where it was never relayed. Raises LedgerError.
    """
    told = sorted(ledger.plans(organisation, user), key=lambda state: state.told.seen_at, reverse=True)
    who = (("organisation", organisation), ("user", user))
    used = sorted(ledger.summed(Query(where=who), ("agent",)), key=lambda sums: sums.ended_at, reverse=True)
    names = [*(state.agent for state in told), *(str(sums.key[0]) for sums in used)]
    return next((name for name in names if name != agent and family(name) == agent), agent)


def _read(path: Path, read: Callable[[Iterable[bytes]], Iterator[PlanWindow]]) -> list[PlanWindow]:
    with suppress(BookUnreadableError, OSError):
        return list(read(last_lines(path)))
    return []


def _latest(paths: Iterable[Path]) -> Sequence[Path]:
    dated: list[tuple[int, Path]] = []
    for path in paths:
        with suppress(OSError):
            dated.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(dated)[-_FILES:]]


def _news(windows: Iterable[PlanWindow]) -> Iterator[PlanWindow]:
    last: dict[str, PlanWindow] = {}
    for window in windows:
        if is_news(window, last.get(window.window)):
            last[window.window] = window
            yield window
