"""What goes wrong with a PostgreSQL while parties run, each as a trial; the relay reaches it through a link."""

from __future__ import annotations

import os
import random
import signal
from contextlib import closing, suppress
from pathlib import Path

import psycopg

from acp_proxy.ledger import open_ledger
from harness.faults.link import Link
from harness.faults.trial import Home, Verdict, at_random_moment, until
from harness.postgres import Server


def home_at(path: Path, server: Server, link: Link, config: str = "") -> Home:
    """One whose relays reach a database of their own through the link."""
    url = server.create(path.name)
    open_ledger(url, journals=()).close()
    return Home(path, config, url.replace(f":{server.port}/", f":{link.port}/"))


def answers_slowly(home: Home, link: Link, turns: int = 60) -> Verdict:
    link.delay = 0.05
    with home.trial(turns) as trial:
        trial.until_over()
    link.delay = 0
    return home.verdict(trial)


def drops_connections(home: Home, link: Link, chance: random.Random, turns: int = 60) -> Verdict:
    with home.trial(turns) as trial:
        for cut in range(1, turns - 20, 10):
            trial.until_acked(cut + chance.randrange(10))
            link.cut()
        trial.until_over()
    return home.verdict(trial)


def falls_silent(home: Home, link: Link, chance: random.Random, turns: int = 60) -> Verdict:
    with home.trial(turns) as trial:
        trial.until_acked(chance.randint(1, 20))
        link.fall_silent()
        trial.until_over()
    link.speak()
    return home.verdict(trial)


def is_killed(home: Home, chance: random.Random, turns: int = 60) -> Verdict:
    """kill -9 of the process that serves the relay: the server ends all others, and recovers."""
    with home.trial(turns) as trial:
        trial.until_acked(chance.randint(5, 30))
        assert until(lambda: _killed(_backend(home.url)))
        trial.until_over()
    assert until(lambda: _backend(home.url))
    return home.verdict(trial)


def is_paused(home: Home, server: Server, chance: random.Random, turns: int = 60) -> Verdict:
    """SIGSTOP and SIGCONT of all its processes, several times."""
    with home.trial(turns) as trial:
        for acked in range(0, turns - 15, 15):
            trial.until_acked(acked)
            server.signal(signal.SIGSTOP)
            at_random_moment(chance, 0.3)
            server.signal(signal.SIGCONT)
        trial.until_over()
    return home.verdict(trial)


def fails_over(home: Home, server: Server, chance: random.Random, turns: int = 80, *, meanwhile: int = 50) -> Verdict:
    """Stopped, and started when so many turns have ended meanwhile."""
    with home.trial(turns) as trial:
        trial.until_acked(chance.randint(1, 20))
        server.stop()
        trial.until_acked(meanwhile)
        server.start()
        trial.until_over()
    return home.verdict(trial)


def _killed(backend: int) -> bool:
    """Whether there was such a backend: one that ends by itself is none, and 0 would be all of us."""
    if not backend:
        return False
    with suppress(ProcessLookupError):
        os.kill(backend, signal.SIGKILL)
        return True
    return False


def _backend(url: str) -> int:
    """The process that serves a relay, or whoever asks where there is none; 0 while the database is away."""
    sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() ORDER BY application_name = %s DESC"
    with suppress(psycopg.OperationalError), closing(psycopg.connect(url)) as connection:
        found = connection.execute(sql, ("acp-proxy",)).fetchone()
        return int(found[0]) if found else 0
    return 0
