"""A cluster of members, with all that stands between them and who uses the database.

What is killed can be started again; whatever runs at the end is killed by its id.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Literal

import psycopg

from harness.cluster import settings
from harness.cluster.member import Member
from harness.cluster.programs import Program, program
from harness.cluster.settings import DEFAULT, Times
from harness.daemons import until
from harness.faults.link import Link, linked
from harness.ports import free_port
from harness.postgres import binaries, give

Way = Literal["pgbouncer", "haproxy", "hosts"]


class Cluster:
    """Up when `started` hands it on. `members` are in no order."""

    def __init__(self, members: list[Member], ports: dict[str, int], others: list[Program]) -> None:
        self.members = members
        self._ports = ports
        self._others = others

    def url(self, database: str, way: Way) -> str:
        """Of a database by way of PgBouncer and haproxy, of haproxy alone, or by naming all members."""
        if way == "hosts":
            hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
            return f"postgresql://owner@{hosts}/{database}?target_session_attrs=read-write"
        return f"postgresql://owner@127.0.0.1:{self._ports[way]}/{database}"

    def create(self, database: str) -> None:
        with closing(psycopg.connect(self.url("postgres", "hosts"), autocommit=True)) as connection:
            connection.execute(f'CREATE DATABASE "{database}"'.encode())
        # Who connects to a standby that has no such database is told so, and asks no other member.
        until(lambda: all(_has(member, database) for member in self.members), f"every member has {database}")

    @property
    def primary(self) -> Member:
        """Waits for one."""
        found = until(self._primary, lambda: f"there is a primary: {self._said()}")
        assert found
        return found

    def until_led(self) -> None:
        """Returns when there is a primary."""
        assert self.primary

    def until_whole(self, within: float = 120) -> None:
        """Returns when there is a primary, and all others follow it."""
        until(self._is_whole, lambda: f"all members run: {self._said()}", within)

    def switch_over(self) -> Member:
        """Orderly, to any other member; the one that was the primary."""
        old = self.primary
        to = next(member for member in self.members if member is not old and member.is_replica)
        old.ask("/switchover", leader=old.name, candidate=to.name)
        return old

    def _primary(self) -> Member | None:
        return next((member for member in self.members if member.program.runs and member.is_primary), None)

    def _is_whole(self) -> bool:
        leader = self._primary()
        others = [member for member in self.members if member is not leader]
        return leader is not None and all(member.is_replica for member in others) and _followers(leader) == len(others)

    def _said(self) -> str:
        return "\n".join(f"{member.name}: {member.told()} {member.program.said()[-600:]}" for member in self.members)


@contextmanager
def started(
    members: int = 2, *, synchronous: bool = False, times: Times = DEFAULT, pooled: bool = True
) -> Iterator[Cluster]:
    """With so many members, in a minute at most; `pooled` has PgBouncer before haproxy."""
    place = Path(tempfile.mkdtemp(prefix="acp-proxy-cluster-"))
    give(place)
    etcd_port, ports = free_port(), {"haproxy": free_port(), "pgbouncer": free_port()}
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        others: list[Program] = []

        def run(name: str, *arguments: str | Path) -> None:
            one = Program([program(name), *arguments], _file(place, f"{name}.log"))
            stack.callback(one.kill)
            one.start()
            others.append(one)

        directory = place / "etcd"
        directory.mkdir(0o700)
        give(directory)
        run("etcd", *settings.etcd(directory, etcd_port, free_port()))
        made = []
        for number in range(members):
            link = stack.enter_context(linked(port := free_port()))
            member = _member(place, f"member{number}", port, link, etcd_port, times, synchronous=synchronous)
            stack.callback(member.kill)
            made.append(member)
        cluster = Cluster(made, ports, others)
        databases = {member.port: member.api for member in made}
        run("haproxy", "-db", "-f", _file(place, "haproxy.cfg", settings.haproxy(ports["haproxy"], databases, times)))
        if pooled:
            text = settings.pgbouncer(ports["pgbouncer"], ports["haproxy"], times)
            run("pgbouncer", _file(place, "pgbouncer.ini", text))
        made[0].start()
        assert cluster.primary is made[0]
        for member in made[1:]:
            member.start()
        cluster.until_whole()
        for way in ("haproxy", "pgbouncer")[: 1 + pooled]:
            until(lambda way=way: _reaches(cluster.url("postgres", way)), f"{way} leads to the primary")  # type: ignore[misc]  # mypy gives no type to a default of a lambda
        yield cluster


def _member(place: Path, name: str, port: int, link: Link, etcd: int, times: Times, *, synchronous: bool) -> Member:
    api, data = free_port(), place / name
    text = settings.patroni(
        name,
        api=api,
        port=port,
        reached_by=link.port,
        etcd=etcd,
        data=data,
        binaries=binaries(),
        times=times,
        synchronous=synchronous,
    )
    file = _file(place, f"{name}.json", text)
    return Member(name, api, port, link, Program.of_patroni(file, _file(place, f"{name}.log")), data)


def _file(place: Path, name: str, text: str = "") -> Path:
    path = place / name
    path.write_text(text)
    give(path)
    return path


def _followers(leader: Member) -> int:
    with suppress(psycopg.Error), closing(psycopg.connect(_url_of(leader), connect_timeout=3)) as connection:
        sql = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        ((count,),) = connection.execute(sql).fetchall()
        return int(count)
    return -1


def _has(member: Member, database: str) -> bool:
    with suppress(psycopg.Error), closing(psycopg.connect(_url_of(member), connect_timeout=3)) as connection:
        return bool(connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (database,)).fetchall())
    return False


def _url_of(member: Member) -> str:
    return f"postgresql://owner@127.0.0.1:{member.port}/postgres"


def _reaches(url: str) -> bool:
    with suppress(psycopg.Error), closing(psycopg.connect(url, connect_timeout=3)) as connection:
        return connection.execute("SELECT NOT pg_is_in_recovery()").fetchall() == [(True,)]
    return False
