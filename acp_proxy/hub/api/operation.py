"""Answers about the ledger itself: its clock, metrics, machines, and what moving it needs."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from acp_proxy.hub.api.desk import ADMINISTRATOR, SEES_ALL, Desk, reads, streams, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.ledger.bill_sources import BillSource
from acp_proxy.ledger.exports import Exporter
from acp_proxy.ledger.hub import questions, wire
from acp_proxy.ledger.hub.questions import Check, Of, Table
from acp_proxy.ledger.hub.wire import Clock, Done, Nothing
from acp_proxy.ledger.settings import Settings
from acp_proxy.ledger.sums.labels import Label
from acp_proxy.ledger.sums.tallied import Dimensions, Whole
from acp_proxy.ledger.sums.tallies import Tally
from acp_proxy.ledger.writing.copied_tables import COPIED

_MOST = 1000  # counts or rows in one call


def clock(desk: Desk, _: Nothing) -> Clock:
    return Clock(desk.now)


def agents(desk: Desk, _: Nothing) -> list[tuple[str, str | None, int]]:
    return desk.ledger.recent.agents()


def four_weeks(desk: Desk, asked: Of) -> dict[int, int]:
    return dict(desk.ledger.recent.rows_by_four_weeks(desk.claims.organisation(asked.organisation)))


def by_day(desk: Desk, asked: questions.Days) -> dict[int, int]:
    return dict(desk.ledger.recent.rows_by_day(desk.claims.organisation(asked.organisation), asked.four_weeks))


def note_machine(desk: Desk, asked: Settings) -> Nothing:
    organisation = desk.claims.organisation(asked.organisation)
    desk.ledger.note_settings(replace(asked, organisation=organisation, user=desk.claims.writer(asked.user)))
    return Nothing()


def machines(desk: Desk, asked: questions.At) -> list[Settings]:
    found = desk.ledger.settings(desk.claims.organisation(asked.organisation), asked.at)
    return [each for each in found if desk.claims.sees_user(each.user)]


def wholes(desk: Desk, asked: Of) -> list[Whole]:
    return desk.ledger.tallied.wholes(desk.claims.organisation(asked.organisation))


def series(desk: Desk, asked: questions.Ids) -> dict[str, Dimensions]:
    return desk.ledger.tallied.series(desk.claims.organisation(asked.organisation), asked.ids[: 10 * _MOST])


def tallies(desk: Desk, asked: Of) -> list[Tally]:
    return desk.ledger.tallied.tallies(desk.claims.organisation(asked.organisation))


def labels(desk: Desk, asked: Of) -> list[Label]:
    return desk.ledger.tallied.labels(desk.claims.organisation(asked.organisation))


def active(desk: Desk, asked: questions.At) -> dict[str, int]:
    return desk.ledger.tallied.active_sessions(desk.claims.organisation(asked.organisation), asked.at)


def expect(desk: Desk, asked: questions.Expected) -> Nothing:
    organisation = desk.claims.organisation(asked.organisation)
    desk.ledger.tallied.expect(organisation, asked.agent, desk.claims.team(asked.team), asked.model)
    return Nothing()


def relayed(desk: Desk, asked: questions.Relayed) -> Nothing:
    if len(asked.counts) > _MOST:
        raise RefusedError(413, f"expected at most {_MOST} counts")
    organisation = desk.claims.organisation(asked.organisation)
    desk.ledger.tallied.count_relayed(organisation, asked.process, asked.sequence, asked.counts, asked.now)
    return Nothing()


def exporters(desk: Desk, asked: Of) -> list[Exporter]:
    return desk.ledger.exporters(desk.claims.organisation(asked.organisation))


def bill_sources(desk: Desk, asked: Of) -> list[BillSource]:
    return desk.ledger.bill_sources(desk.claims.organisation(asked.organisation))


def check(desk: Desk, _: Nothing) -> Check:
    says = desk.ledger.check()  # with its file, or the address of its server
    return Check(says if desk.who.role in ADMINISTRATOR else "it answers; administrators see its version and size")


def rebuild(desk: Desk, _: Nothing) -> Done:
    return Done(desk.ledger.rebuild())


def tables(desk: Desk, _: Nothing) -> Iterable[Table]:
    for table, rows in desk.ledger.beside.all():
        for start in range(0, max(len(rows), 1), _MOST):  # one that is empty is there, too
            yield Table(table, [list(row) for row in rows[start : start + _MOST]])


def add_to_table(desk: Desk, asked: Table) -> questions.Number:
    if len(asked.rows) > _MOST or asked.table not in COPIED:
        raise RefusedError(400, f"expected at most {_MOST} rows of {', '.join(COPIED)}")
    return questions.Number(desk.ledger.beside.add(asked.table, asked.rows))


ANSWERS = [
    reads(wire.CLOCK, clock),
    reads(questions.AGENTS, agents, SEES_ALL),
    reads(questions.FOUR_WEEKS, four_weeks, SEES_ALL),
    reads(questions.BY_DAY, by_day, SEES_ALL),
    writes(questions.NOTE_MACHINE, note_machine),
    reads(questions.MACHINES, machines),
    reads(questions.WHOLES, wholes, SEES_ALL),
    reads(questions.SERIES, series, SEES_ALL),
    reads(questions.TALLIES, tallies, SEES_ALL),
    reads(questions.LABELS, labels, SEES_ALL),
    reads(questions.ACTIVE, active, SEES_ALL),
    writes(questions.EXPECT, expect),
    writes(questions.RELAYED, relayed),
    reads(questions.EXPORTERS, exporters, SEES_ALL),
    reads(questions.BILL_SOURCES, bill_sources, SEES_ALL),
    reads(questions.CHECK, check),
    writes(questions.REBUILD, rebuild, ADMINISTRATOR),
    streams(questions.TABLES, tables, ADMINISTRATOR),
    writes(questions.ADD_TO_TABLE, add_to_table, ADMINISTRATOR),
]
