"""The recorder: rows of a session's turns in the ledger, and what the ledger knows announced."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from acp_proxy.core.entry import Entry, Origin, SessionState
from acp_proxy.core.events import (
    ContextChanged,
    Event,
    Implementation,
    Initialized,
    Opening,
    SessionClosed,
    SessionInfoChanged,
    SessionOpened,
    SessionRequested,
    SessionRestored,
    Turn,
    TurnMetered,
    TurnStarted,
)
from acp_proxy.core.money import Money
from acp_proxy.interceptors import recorder
from acp_proxy.interceptors.recorder import LONGEST_TITLE, Recorder
from acp_proxy.ledger import Ledger, Query, Row, SessionInfo, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.journal.records import read_journal
from acp_proxy.ledger.journal.recovery import journals_found
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.places import journal_directories, sqlite_url
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.system.directories import default_ledger
from harness.rows import NOON, line, row
from tests.ends import Ends
from tests.ledger.warned import Warnings
from tests.threads import no_more_threads

IDENTITY = Origin("default", "alice", "core", "cwd-project", "laptop", "claude-wrapper", None, None)
INITIALIZED = Initialized(1, 1, Implementation("zed", "1.0"), Implementation("claude-agent-acp", "0.100.0"), False)
PARENT_COST = Money.of("0.01", "USD")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


class Recording:
    """A recorder with its ledger, and what it announces."""

    def __init__(self, environ: dict[str, str], **options: Any) -> None:
        self.environ = environ
        self.announced: asyncio.Queue[SessionRestored] = asyncio.Queue()
        self.worker = LedgerWorker.at(sqlite_url(default_ledger(environ)), environ, Warnings())
        self.recorder = Recorder(self.worker, IDENTITY, self.announced.put_nowait, clock=lambda: 42, **options)

    def see(self, *events: Event) -> None:
        for event in events:
            assert list(self.recorder.on_event(event)) == []

    async def rows(self) -> list[Row]:
        await asyncio.to_thread(self.worker.close, 30)
        with ledger_of(self.environ) as ledger:
            return list(ledger.rows(Query()))

    async def sessions(self) -> list[SessionInfo]:
        await asyncio.to_thread(self.worker.close, 30)
        with ledger_of(self.environ) as ledger:
            return list(ledger.sessions(Query()))


def ledger_of(environ: dict[str, str]) -> closing[Ledger]:
    return closing(open_ledger(sqlite_url(default_ledger(environ)), journals=()))


@asynccontextmanager
async def recording(environ: dict[str, str], **options: object) -> AsyncIterator[Recording]:
    made = Recording(environ, **options)
    try:
        yield made
    finally:
        await made.recorder.aclose()


def metered(entry: Entry | None = None, state: SessionState | None = None) -> TurnMetered:
    return TurnMetered(NOON, entry or row().entry, state or SessionState(), reported_usage=False, reported_cost=False)


async def test_a_metered_turn_is_one_row_with_who_and_where(environ: dict[str, str]) -> None:
    entry = row(line(), line("haiku")).entry
    async with recording(environ) as made:
        made.see(INITIALIZED, metered(entry))
        origin = replace(IDENTITY, agent="claude-agent-acp", agent_version="0.100.0", client="zed")
        assert await made.rows() == [Row(origin, entry)]


async def test_the_row_is_in_the_journal_when_the_event_has_been_seen(environ: dict[str, str]) -> None:
    # The ledger cannot be made where a directory stands in its place, so the journal is where the row can be.
    ledger = Path(environ["HOME"]) / ".local/state/acp-proxy/ledger.db"
    ledger.mkdir(parents=True)
    made = Recording(environ)
    made.see(metered(row(id="a").entry))
    await made.recorder.aclose()
    [journal] = journals_found(journal_directories(environ))
    assert journal.contents
    assert [found.entry.id for found in journal.contents.rows] == ["a"]


async def test_an_end_that_takes_too_long_says_what_the_journal_keeps_and_is_no_failure(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_FLUSH", 30)
    monkeypatch.setattr(recorder, "_LATE", 0.01)
    url, may_open, warnings = sqlite_url(default_ledger(environ)), threading.Event(), Warnings()

    def opened() -> BudgetLedger:
        may_open.wait(30)
        return open_ledger(url, journals=())

    worker = LedgerWorker(opened, open_journal(journal_directories(environ), url, warnings), warnings)
    stuck = Recorder(worker, IDENTITY, lambda _: None)
    assert list(stuck.on_event(metered(row(id="a").entry))) == []
    ends = Ends([stuck])
    await ends.dispatcher.aclose()
    effect = "the next command that opens the ledger books them"
    assert (ends.log, warnings.told) == ([], [("ledger.rows_left", {"rows": 1, "effect": effect})])
    may_open.set()
    assert await asyncio.to_thread(worker.close, 30) == 0


async def test_a_turn_that_has_not_ended_is_in_the_journal_with_what_it_cost_so_far(environ: dict[str, str]) -> None:
    made = Recording(environ)
    made.see(TurnStarted(NOON, "s1", Turn("t", "s1", "turn", NOON)))
    made.see(ContextChanged(NOON, "s1", SessionState(costs=(PARENT_COST,))))
    await made.recorder.aclose()
    [journal] = journals_found(journal_directories(environ))
    assert journal.contents
    assert [(row.entry.id, row.entry.costs) for row in journal.contents.open] == [("t", (PARENT_COST,))]
    with closing(open_ledger(sqlite_url(default_ledger(environ)), journals=journal_directories(environ))) as ledger:
        assert [(row.entry.id, row.entry.costs) for row in ledger.rows(Query())] == [("t", (PARENT_COST,))]


async def test_of_a_turn_that_never_ended_the_ledger_knows_where_its_agents_counter_stood(
    environ: dict[str, str],
) -> None:
    made = Recording(environ)
    made.see(TurnStarted(NOON, "s1", Turn("t", "s1", "turn", NOON)))
    made.see(ContextChanged(NOON, "s1", SessionState(costs=(PARENT_COST,), agent_cost=PARENT_COST)))
    await made.recorder.aclose()
    with closing(open_ledger(sqlite_url(default_ledger(environ)), journals=journal_directories(environ))) as ledger:
        state = ledger.state_of(IDENTITY, "s1")
    assert state is not None
    assert (state.costs, state.agent_cost) == ((PARENT_COST,), PARENT_COST)


async def test_what_a_running_turn_costs_is_kept_once_in_a_while_and_then_the_latest(environ: dict[str, str]) -> None:
    due: list[Callable[[], object]] = []
    made = Recording(environ, later=lambda _, call: due.append(call))
    made.see(TurnStarted(NOON, "s1", Turn("t", "s1", "turn", NOON)))
    for cost in ("0.01", "0.02", "0.03"):
        made.see(ContextChanged(NOON, "s1", SessionState(costs=(Money.of(cost, "USD"),))))
    assert kept_open(environ) == ["0.01"]
    due.pop()()
    assert kept_open(environ) == ["0.03"]
    made.see(ContextChanged(NOON, "s1", SessionState(costs=(Money.of("0.04", "USD"),))))
    made.see(metered(row(id="t").entry))
    assert kept_open(environ) == []
    assert len(due) == 1
    await made.rows()


def kept_open(environ: dict[str, str]) -> list[str]:
    """What the journal has of turns that run."""
    [path] = [path for directory in journal_directories(environ) for path in directory.glob("*.journal")]
    contents = read_journal(path.read_bytes())
    assert contents
    return [cost.text for found in contents.open for cost in found.entry.costs]


async def test_a_turn_that_has_ended_is_booked_as_it_ended(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(TurnStarted(NOON, "s1", Turn("t", "s1", "turn", NOON)))
        made.see(metered(row(id="t").entry))
        assert [found.entry.stop_reason for found in await made.rows()] == ["end_turn"]
        assert journals_found(journal_directories(environ)) == []


async def test_what_a_session_costs_after_a_turn_is_the_next_ones(environ: dict[str, str]) -> None:
    made = Recording(environ)
    made.see(TurnStarted(NOON, "s1", Turn("t", "s1", "turn", NOON)), metered(row(id="t").entry))
    made.see(TurnStarted(NOON, "s1", Turn("next", "s1", "turn", NOON)))
    made.see(ContextChanged(NOON, "s1", SessionState(costs=(PARENT_COST,))))
    await made.recorder.aclose()
    [journal] = journals_found(journal_directories(environ))
    assert journal.contents
    assert [(row.entry.id, row.entry.costs) for row in journal.contents.open] == [("next", (PARENT_COST,))]


async def test_an_agent_that_has_not_told_its_name_goes_by_its_commands(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(metered())
        nameless = structs.replace(INITIALIZED, agent=Implementation(None, "3"))
        made.see(nameless, metered())
        assert [(found.origin.agent, found.origin.agent_version) for found in await made.rows()] == [
            ("claude-wrapper", None),
            ("claude-wrapper", "3"),
        ]


async def test_the_users_name_for_the_agent_wins(environ: dict[str, str]) -> None:
    async with recording(environ, agent="mine") as made:
        made.see(metered(), INITIALIZED, metered())
        assert [found.origin.agent for found in await made.rows()] == ["mine", "mine"]


@pytest.mark.parametrize("how", ["load", "resume"])
async def test_a_session_that_is_asked_for_is_announced_with_what_is_known(
    environ: dict[str, str], how: Opening
) -> None:
    state = SessionState(context_used=5, model="opus")
    async with recording(environ) as made:
        made.see(INITIALIZED, metered(state=state))
        made.see(SessionRequested(NOON, how, "s1"))
        known = replace(state, costs=(PARENT_COST,))
        assert await made.announced.get() == SessionRestored(42, "s1", known)


async def test_a_new_session_is_not_asked_for_since_an_older_one_of_its_id_is_none_of_it(
    environ: dict[str, str],
) -> None:
    async with recording(environ) as made:
        made.see(INITIALIZED, metered(state=SessionState(context_used=5)), SessionOpened(NOON, "new", "s1"))
        made.see(SessionRequested(NOON, "load", "s2"))
        assert (await made.announced.get()).session == "s2"


async def test_a_new_session_has_the_ledger_opened_before_its_first_turn(environ: dict[str, str]) -> None:
    is_open = threading.Event()
    url = sqlite_url(default_ledger(environ))
    worker = LedgerWorker.at(url, environ, Warnings(), at_first=lambda _: is_open.set())
    try:
        Recorder(worker, IDENTITY, print).on_event(SessionOpened(NOON, "new", "s1"))
        assert await asyncio.to_thread(is_open.wait, 30)
    finally:
        await asyncio.to_thread(worker.close, 30)


async def test_a_loaded_session_is_asked_for_once(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(INITIALIZED, SessionRequested(NOON, "load", "s1"), SessionOpened(NOON, "load", "s1"))
        made.see(SessionRequested(NOON, "load", "s2"))
        assert [(await made.announced.get()).session for _ in range(2)] == ["s1", "s2"]


async def test_a_fork_is_announced_with_the_state_of_its_parent(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(INITIALIZED, metered(state=SessionState(model="opus")))
        made.see(SessionRequested(NOON, "fork", "s1"), SessionOpened(NOON, "fork", "child", parent="s1"))
        known = SessionState(model="opus", costs=(PARENT_COST,))
        assert await made.announced.get() == SessionRestored(42, "child", known, parent="s1")


COSTLY = SessionState(agent_cost=PARENT_COST)
ENDED = row().entry.ended_at


def began(at: int) -> TurnStarted:
    return TurnStarted(at, "s1", Turn("next", "s1", "turn", at))


async def test_a_session_with_a_cost_of_its_agents_own_is_asked_for_again_after_a_rest(environ: dict[str, str]) -> None:
    more = Money.of("0.05", "USD")
    async with recording(environ) as made:
        made.see(INITIALIZED, metered(state=COSTLY), SessionRequested(NOON, "load", "another"))
        assert (await made.announced.get()).session == "another"  # so the row is in the ledger
        async with recording(environ) as elsewhere:
            elsewhere.see(INITIALIZED, metered(row(id="t2").entry, SessionState(agent_cost=more)))
            assert len(await elsewhere.rows()) == 2
        made.see(began(ENDED + 10**10))
        known = SessionState(agent_cost=more, costs=(Money.of("0.02", "USD"),))
        assert await made.announced.get() == SessionRestored(42, "s1", known, again=True)


async def test_a_loaded_session_that_has_rested_is_asked_for_again(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(INITIALIZED, metered(state=COSTLY))
        await made.rows()
    async with recording(environ) as made:
        made.see(INITIALIZED, SessionRequested(42, "load", "s1"))
        assert not (await made.announced.get()).again
        made.see(began(42 + 10**10))
        assert (await made.announced.get()).again


@pytest.mark.parametrize(
    "events",
    [
        (metered(state=COSTLY), began(ENDED + 10**10 - 1)),
        (metered(), began(ENDED + 10**10)),
        (metered(state=COSTLY), SessionClosed(ENDED, "s1"), began(ENDED + 10**10)),
        (began(ENDED),),
    ],
    ids=["too soon", "no cost", "closed", "no turn"],
)
async def test_a_session_is_not_asked_for_again_where_nothing_can_have_changed(
    environ: dict[str, str], events: tuple[Event, ...]
) -> None:
    async with recording(environ) as made:
        made.see(INITIALIZED, *events, SessionRequested(NOON, "load", "s2"))
        assert (await made.announced.get()).session == "s2"


async def test_another_agents_session_of_the_same_id_is_not_known(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(INITIALIZED, metered())
        made.see(structs.replace(INITIALIZED, agent=Implementation("codex-acp")), SessionRequested(NOON, "load", "s1"))
        assert (await made.announced.get()).state is None


async def test_a_title_is_kept_and_is_not_the_whole_prompt(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(metered(), SessionInfoChanged(NOON + 10**12, "s1", "x" * 5000, None, {}))
        assert [session.title for session in await made.sessions()] == ["x" * LONGEST_TITLE]


async def test_a_title_that_came_before_the_first_row_is_kept_with_it(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(SessionInfoChanged(NOON, "s1", "A title", None, {}))
        made.see(metered(state=SessionState(title="A title" + "!" * 5000)))
        [session] = await made.sessions()
        assert session.title == ("A title" + "!" * 5000)[:LONGEST_TITLE]


async def test_without_titles_none_is_kept_however_it_came(environ: dict[str, str]) -> None:
    async with recording(environ, titles=False) as made:
        made.see(metered(state=SessionState(title="A title", model="opus")))
        made.see(SessionInfoChanged(NOON * 2, "s1", "A title", None, {}))
        [session] = await made.sessions()
        assert session.title is None


async def test_a_change_without_a_title_leaves_the_title(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(metered(state=SessionState(title="A title")))
        made.see(SessionInfoChanged(NOON * 2, "s1", None, "2026-11-21T12:00:00Z", {}))
        assert [session.title for session in await made.sessions()] == ["A title"]


async def test_a_change_of_something_else_leaves_the_title_that_another_process_wrote(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(metered(state=SessionState(title="Another's title")))
        made.see(SessionInfoChanged(NOON * 2, "s1", "A title", "2026-11-21T12:00:00Z", {}, titled=False))
        assert [session.title for session in await made.sessions()] == ["Another's title"]


async def test_a_title_that_its_agent_has_cleared_is_kept_no_longer(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        made.see(metered(state=SessionState(title="A title")))
        made.see(SessionInfoChanged(NOON * 2, "s1", None, None, {}, cleared=True))
        assert [session.title for session in await made.sessions()] == [None]


async def test_a_sessions_project_is_that_of_its_own_directory(environ: dict[str, str]) -> None:
    async with recording(environ, project_of=lambda cwd: f"project of {cwd}") as made:
        made.see(SessionOpened(NOON, "new", "s1", cwd="/src/web"), SessionOpened(NOON, "new", "s2"))
        await projects_found()
        made.see(metered(row(session="s1").entry), metered(row(session="s2").entry))
        made.see(SessionClosed(NOON, "s1"), metered(row(session="s1").entry))
        assert [found.origin.project for found in await made.rows()] == [
            "project of /src/web",
            "cwd-project",
            "cwd-project",
        ]


async def test_a_session_that_is_opened_elsewhere_is_of_the_project_there(environ: dict[str, str]) -> None:
    async with recording(environ, project_of=lambda cwd: cwd.name) as made:
        for directory in ("web", "infra"):
            made.see(SessionOpened(NOON, "load", "s1", cwd=f"/src/{directory}"))
            assert (await made.recorder.origin_when_known("s1", 30)).project == directory
            made.see(metered())
        assert [found.origin.project for found in await made.rows()] == ["web", "infra"]


async def test_a_turn_does_not_wait_for_its_project(environ: dict[str, str]) -> None:
    found = threading.Event()

    def slow(cwd: Path) -> str:
        found.wait(30)
        return "late"

    async with recording(environ, project_of=slow) as made:
        made.see(SessionOpened(NOON, "new", "s1", cwd="/src/web"), metered())
        found.set()
        await projects_found()
        made.see(metered())
        assert [one.origin.project for one in await made.rows()] == ["cwd-project", "late"]


async def test_who_needs_the_project_may_wait_for_it_and_not_for_ever(environ: dict[str, str]) -> None:
    found = threading.Event()

    def slow(cwd: Path) -> str:
        found.wait(30)
        return "late"

    async with recording(environ, project_of=slow) as made:
        made.see(SessionOpened(NOON, "new", "s1", cwd="/src/web"))
        assert (await made.recorder.origin_when_known("s1", 0.001)).project == "cwd-project"
        found.set()
        assert (await made.recorder.origin_when_known("s1", 30)).project == "late"
        assert (await made.recorder.origin_when_known("s1", 30)).project == "late"


async def test_where_no_thread_can_be_started_nobody_waits_for_a_project(environ: dict[str, str]) -> None:
    async with recording(environ, project_of=lambda cwd: cwd.name) as made:
        with no_more_threads():
            made.see(SessionOpened(NOON, "load", "s1", cwd="/src/web"))
        async with asyncio.timeout(30):
            assert (await made.recorder.origin_when_known("s1", 3600)).project == "cwd-project"


async def test_a_project_is_a_sessions_when_the_loop_hears_of_it_and_may_have_closed_the_session(
    environ: dict[str, str],
) -> None:
    """Were it at once, in the thread that found it, a session closed at this moment would leave it to the next one."""
    async with recording(environ, project_of=lambda cwd: cwd.name) as made:
        made.see(SessionOpened(NOON, "new", "s1", cwd="/src/web"))
        finders_ended()
        assert made.recorder.origin_of("s1").project == "cwd-project"
        await asyncio.sleep(0)
        assert made.recorder.origin_of("s1").project == "web"


@pytest.mark.parametrize("then", ["elsewhere", "closed"])
async def test_a_project_that_is_found_too_late_is_nobodys(environ: dict[str, str], then: str) -> None:
    found = threading.Event()

    def slow(cwd: Path) -> str:
        if cwd.name == "slow":
            found.wait(30)
        return cwd.name

    async with recording(environ, project_of=slow) as made:
        made.see(SessionOpened(NOON, "load", "s1", cwd="/src/slow"))
        if then == "closed":
            made.see(SessionClosed(NOON, "s1"))
        else:
            made.see(SessionOpened(NOON, "load", "s1", cwd="/src/elsewhere"))
            assert (await made.recorder.origin_when_known("s1", 30)).project == "elsewhere"
        found.set()
        finders_ended()
        assert made.recorder.origin_of("s1").project == ("cwd-project" if then == "closed" else "elsewhere")
        await asyncio.sleep(0)  # until the loop has heard of it
        assert made.recorder.origin_of("s1").project == ("cwd-project" if then == "closed" else "elsewhere")


async def projects_found() -> None:
    finders_ended()
    await asyncio.sleep(0)  # until the loop has heard of it


def finders_ended() -> None:
    for thread in threading.enumerate():
        if thread.name == "acp-proxy project":
            thread.join(30)


async def test_names_that_are_no_text_are_kept_as_well_as_they_can_be(environ: dict[str, str]) -> None:
    worker = LedgerWorker.at(sqlite_url(default_ledger(environ)), environ, Warnings())
    recorder = Recorder(worker, replace(IDENTITY, project="caf\udce9"), print)
    recorder.on_event(metered())
    await asyncio.to_thread(worker.close, 30)
    with ledger_of(environ) as ledger:
        assert [found.origin.project for found in ledger.rows(Query())] == ["caf?"]


async def test_an_agent_whose_name_is_cut_inside_of_a_character_has_rows_all_the_same(environ: dict[str, str]) -> None:
    half = Implementation("agent \ud83d", "1.0 \ud83d")
    async with recording(environ) as made:
        made.see(Initialized(1, 1, half, half, False), metered())
        [found] = await made.rows()
        assert (found.origin.agent, found.origin.agent_version, found.origin.client) == ("agent ?", "1.0 ?", "agent ?")


async def test_an_answer_after_the_end_of_the_loop_is_dropped(environ: dict[str, str]) -> None:
    warnings = Warnings()
    worker = LedgerWorker.at(sqlite_url(default_ledger(environ)), environ, warnings)

    async def ask() -> None:
        Recorder(worker, IDENTITY, print).on_event(SessionRequested(NOON, "load", "s1"))

    await asyncio.to_thread(asyncio.run, ask())
    assert await asyncio.to_thread(worker.close, 30) == 0
    assert warnings.told == []


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threading.enumerate()  # a hub of other tests may be there
    yield
    for thread in threading.enumerate():
        if thread not in before and thread.name.startswith("acp-proxy"):
            thread.join(30)
            assert not thread.is_alive()


async def test_names_of_any_length_are_cut_to_what_any_ledger_takes(environ: dict[str, str]) -> None:
    async with recording(environ) as made:
        who = Implementation("a" * 3000, "1" * 3000)
        made.see(Initialized(1, 1, Implementation("z" * 3000, "1"), who, False), metered(row(id="a").entry))
        (found,) = await made.rows()
        origin = found.origin
        assert (origin.agent, origin.agent_version, origin.client) == ("a" * 200, "1" * 200, "z" * 200)
