"""`acp-proxy import`: finds the books of agents, and appends what the ledger lacks. Writes to no stream."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache, cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.config import Config
from acp_proxy.config.applied import billed_by
from acp_proxy.core.entry import Origin
from acp_proxy.core.plans import PlanWindow
from acp_proxy.importing import Tally
from acp_proxy.importing.plans import relayed_as, windows_in
from acp_proxy.importing.relayed import Relayed, relayed
from acp_proxy.importing.rows import id_of, row_of
from acp_proxy.importing.seen_files import SeenFiles, State, state_of
from acp_proxy.importing.sessions import Completer, Correct, only_say
from acp_proxy.importing.shelves import SHELVES, BookUnreadableError, Shelf
from acp_proxy.ledger import Row, open_ledger, open_reader
from acp_proxy.ledger.budgets import BudgetReader
from acp_proxy.ledger.places import canonical_url, journal_directories
from acp_proxy.policy.prices import catalog_here
from acp_proxy.system.directories import home, state_directory
from acp_proxy.system.project import project_of
from acp_proxy.text.times import SECOND

_UNSETTLED = 60 * SECOND  # what is younger may not be written to its end
_AT_ONCE = 4096  # rows that are appended together

Progress = Callable[[str, int, int], None]  # an agent, how many of its files are done, and of how many


class Asked(Struct, frozen=True):
    """What was typed. Without agents all of them; `since` is Unix ns."""

    agents: tuple[str, ...] = ()
    since: int | None = None
    dry_run: bool = False


def main(
    asked: Asked, config: Config, environ: Mapping[str, str], now: int, progress: Progress = lambda *_: None
) -> dict[str, Tally]:
    """By agent, those that have books. Raises LedgerError; what was appended by then stays."""
    shelves = [SHELVES[name] for name in asked.agents or SHELVES]
    files = [(shelf, list(shelf.files(home(environ), environ))) for shelf in shelves]
    found = [(shelf, paths) for shelf, paths in files if paths]
    if asked.dry_run:
        with closing(open_reader(config.ledger.url)) as reader:
            return _Import(asked, config, environ, now, reader).of_all(found, progress)
    with closing(open_ledger(config.ledger.url)) as ledger:
        writing = (ledger.append, ledger.correct, ledger.note_plan)
        return _Import(asked, config, environ, now, ledger, *writing).of_all(found, progress)


class _Batch(Struct):
    """What was read and is not in the ledger yet: calls by the id of their row, and files that have no others."""

    calls: dict[str, Call] = {}
    files: list[tuple[Path, State, set[str]]] = []  # with their sessions
    unbooked: set[str] = set()  # sessions with a turn whose row is still to come


class _Import:
    """One run, with what it knows of the ledger."""

    def __init__(
        self,
        asked: Asked,
        config: Config,
        environ: Mapping[str, str],
        now: int,
        ledger: BudgetReader,
        append: Callable[[Sequence[Row]], object] | None = None,
        correct: Correct = only_say,
        plan: Callable[[Origin, Sequence[PlanWindow]], object] | None = None,
    ) -> None:
        who, url = config.identity, canonical_url(config.ledger.url)
        self._correct = correct
        self._plan = plan
        self._config = config
        self._asked, self._ledger, self._now, self._write = asked, ledger, now, append
        self._who = Origin(who.organisation, who.user, who.team, who.project, socket.gethostname(), "", None, None)
        self._who_of = cache(lambda agent: replace(self._who, billing=billed_by(config, agent).by))
        self._pricer = catalog_here(config, environ)
        self._journals = journal_directories(environ)
        self._seen = SeenFiles(state_directory(environ) / "books", url, who.organisation, who.user)
        if not self._exist([self._seen.last]):
            self._seen.forget()
        self._project_of = cache(lambda directory: project_of(Path(directory)))
        self._last = ""
        self._partly: dict[str, list[Path]] = {}  # files of sessions of which a turn is known in part

    def of_all(self, found: Iterable[tuple[Shelf, Sequence[Path]]], progress: Progress) -> dict[str, Tally]:
        try:
            return {shelf.agent: self._of_shelf(shelf, paths, progress) for shelf, paths in found}
        finally:
            self._end()

    def _of_shelf(self, shelf: Shelf, paths: Sequence[Path], progress: Progress) -> Tally:
        tally, batch = Tally(files=len(paths)), _Batch()
        self._note_plan(shelf, paths)
        for done, path in enumerate(paths):
            progress(shelf.agent, done, len(paths))
            if self._seen.is_unchanged(path):
                tally.unchanged += 1
                continue
            self._read_into(batch, shelf, path, tally)
            if len(batch.calls) >= _AT_ONCE:
                self._append(batch, shelf.agent, tally)
                batch = _Batch()
        self._append(batch, shelf.agent, tally)
        self._complete(shelf, tally)
        progress(shelf.agent, len(paths), len(paths))
        return tally

    def _note_plan(self, shelf: Shelf, paths: Sequence[Path]) -> None:
        """Under the name that the agent is relayed as: what a relay tells later is of the same plan."""
        told = windows_in(shelf.agent, [path for path in paths if not self._seen.is_unchanged(path)])
        if not told or self._plan is None:
            return
        agent = relayed_as(shelf.agent, self._ledger, self._who.organisation, self._who.user)
        for window in told:
            self._plan(replace(self._who, agent=agent), [window])

    def _complete(self, shelf: Shelf, tally: Tally) -> None:
        """Turns that relays know in part, of the sessions whose files have changed."""
        sessions, self._partly = self._partly, {}
        if not sessions or not self._config.books.complete:
            return
        completer = Completer(self._config, self._pricer, self._ledger, self._now - _UNSETTLED, self._now)
        for session, paths in sessions.items():
            tally.completed += len(completer.complete(shelf, session, paths, correct=self._correct))

    def _end(self) -> None:
        if self._write is not None:
            with suppress(OSError):  # the next import reads all files again
                self._seen.save(self._last)

    def _read_into(self, batch: _Batch, shelf: Shelf, path: Path, tally: Tally) -> None:
        state, waiting, sessions = state_of(path), 0, set[str]()
        try:
            for call in _largest(shelf, path, tally).values():
                sessions |= {call.session, call.parent or call.session}
                if self._asked.since is not None and call.at < self._asked.since:
                    continue
                if call.at > self._now - _UNSETTLED:
                    waiting += 1
                else:
                    batch.calls.setdefault(id_of(call, shelf.agent), call)
        except BookUnreadableError as error:
            tally.not_understood[str(error)] += 1
            return
        tally.waiting += waiting
        for session in sessions & self._relayed.incomplete:
            self._partly.setdefault(session, []).append(path)
        if state is not None and not waiting and self._asked.since is None:
            batch.files.append((path, state, sessions))

    def _append(self, batch: _Batch, agent: str, tally: Tally) -> None:
        rows = list(self._new(batch, agent, tally))
        if self._write is not None:
            for start in range(0, len(rows), _AT_ONCE):
                self._write(rows[start : start + _AT_ONCE])
        for row in rows:
            tally.add(row.entry.usage, row.entry.costs, unpriced=row.entry.unpriced)
            self._last = row.entry.id
        for path, state, sessions in batch.files:
            if not sessions & batch.unbooked:
                self._seen.note(path, state)

    def _new(self, batch: _Batch, agent: str, tally: Tally) -> Iterator[Row]:
        """Rows of the calls that the ledger lacks."""
        calls = batch.calls
        known = self._exist(calls)
        tally.known += len(known)
        fresh = [call for key, call in calls.items() if key not in known]
        for call in fresh:
            if call.parent is not None:
                self._relayed.note_parent(call.session, call.parent)
        for call in fresh:
            if (turn := self._relayed.cover(call.session, call.at)) is not None:
                tally.relayed += 1
                if not turn.is_booked:
                    batch.unbooked.add(call.session)
            else:
                yield row_of(call, agent, self._who_of(agent), self._project_of, self._pricer)

    def _exist(self, ids: Iterable[str]) -> set[str]:
        return self._ledger.existing(self._who.organisation, ids)

    @cached_property
    def _relayed(self) -> Relayed:
        return relayed(self._ledger, self._journals, self._who.organisation, self._who.user)


def _largest(shelf: Shelf, path: Path, tally: Tally) -> dict[str, Call]:
    """The file's calls by id. One that stands in several records is what the largest says, from when the first was."""
    calls: dict[str, Call] = {}
    for found in shelf.read(path):
        if not isinstance(found, Call):
            tally.not_understood[_reason(found)] += 1
        elif (known := calls.get(found.id)) is None:
            calls[found.id] = found
        elif found.usage.total > known.usage.total:
            calls[found.id] = replace(found, at=min(found.at, known.at))
    return calls


def _reason(found: NotUnderstood) -> str:
    return f"{found.reason} ({found.version})" if found.version else found.reason
