"""Two hubs in front of one PostgreSQL, and laptops whose proxies share a budget of the hubs' policy.

Each laptop reaches each hub through a link of its own, and the hubs their database through another.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from zoneinfo import ZoneInfo

from acp_proxy.core.budget import Account, Budget, Limit, account_of
from acp_proxy.core.money import Money
from acp_proxy.core.scope import Subject
from acp_proxy.core.windows import Window
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.policies import Policies
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import LedgerError, open_ledger
from acp_proxy.ledger.hub.policy import Document
from harness.faults.link import Link, linked
from harness.faults.parties import COST
from harness.faults.trial import LIMIT, ROOT, Home, Trial, until
from harness.ports import free_port
from harness.postgres import Server

_STALE = 1.5  # seconds after which all hubs hold to another policy
LENT = 4  # turns to a laptop at most
_CONFIG = """
[ledger]
admission_timeout = "4s"
"""
_HUB = """
[database]
url = "{url}"
[lease]
share = 100
turns = {lent}
"""


class HubProcess:
    """One hub that can be killed, and started again on its port."""

    def __init__(self, directory: Path, database: str, name: str) -> None:
        self.port = free_port()
        self._log = directory / f"{name}.log"
        self._config = directory / f"{name}.toml"
        self._config.write_text(_HUB.format(url=database, lent=LENT))
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "acp_proxy", "hub", "--config", str(self._config), "--port", str(self.port)]
        with self._log.open("ab") as log:
            environ = {"HOME": str(self._directory), "PATH": "/usr/bin:/bin"}
            self._process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log)
        assert until(self._answers), self._log.read_text()

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        with closing(connection), suppress(OSError, HTTPException):
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        return False


@dataclass
class Laptop:
    """A machine of one user, with links to the hubs. Its proxies begin turns when they are told to."""

    home: Home
    links: list[Link]
    ports: list[int]
    trials: list[Trial] = field(default_factory=list)

    def go_offline(self) -> None:
        for link in self.links:
            link.to = free_port()  # at which nobody answers
            link.cut()

    def go_online(self) -> None:
        for link, port in zip(self.links, self.ports, strict=True):
            link.to = port


@dataclass
class Team:
    """Hubs, their database, and laptops. `turns` is how many each proxy may still begin when it is told to go on."""

    database: str
    server: Server
    hubs: list[HubProcess]
    laptops: list[Laptop]
    to_database: Link
    turns: int
    most: int = 0  # spent, held and lent beyond the limit, in nano-units, at the worst moment
    free: list[tuple[float, int]] = field(default_factory=list)  # what was left of the limit, by Unix s
    events: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._all = self.turns

    @property
    def trials(self) -> list[Trial]:
        return [trial for laptop in self.laptops for trial in laptop.trials]

    @property
    def troubles(self) -> dict[str, Callable[[], None]]:
        return {
            "the first hub is killed": lambda: self._kill(0),
            "the networks are cut": self._cut,
            "PostgreSQL is restarted": self._restart,
            "the second hub is killed": lambda: self._kill(1),
            "the database's network is cut": self.to_database.cut,
            "a hub's network forgets": self.laptops[0].links[0].forget,
        }

    def allow(self, turns: int) -> None:
        """Have everybody's budget be of so many turns."""
        limit = {"amount": f"{turns * float(COST):.2f}", "currency": "USD"}
        pool = {"name": "pool", "window": "total", "limit": limit, "hold": COST}
        with closing(open_ledger(self.database, journals=())) as ledger:
            Store(ledger.tables, "default")
            Policies(ledger.tables, "default").change(lambda _: Document([pool]), None, "trial", 0)
        time.sleep(_STALE)

    def used(self) -> tuple[int, int]:
        """Spent, held and lent: beyond the limit that is in force, negative for what is left; and altogether."""
        with closing(open_ledger(self.database, journals=())) as ledger:
            (standing,) = ledger.standing([pool()], time.time_ns())
            limit = Policies(ledger.tables, "default").current().document.budgets[0]["limit"]["amount"]
        used = standing.spent + standing.held
        return used - Money.of(limit, "USD").nano, used

    def go_on(self, turns: int) -> None:
        """Each proxy may begin so many more."""
        self.turns -= turns
        for trial in self.trials:
            trial.go_on(self.turns)

    def until_ended(self) -> None:
        """Returns when all that may begin have ended."""
        ended = self._ended
        assert until(lambda: ended() >= len(self.trials) * (self._all - self.turns), LIMIT * 3), self._open()

    def _ended(self) -> int:
        return sum(len(trial.noted("acked")) + len(trial.noted("refused")) for trial in self.trials)

    def _open(self) -> str:
        wanted = self._all - self.turns
        return ", ".join(f"{len(trial.noted('acked'))}+{len(trial.noted('refused'))}/{wanted}" for trial in self.trials)

    def until_more(self, turns: int) -> None:
        """Returns when so many turns more have ended, or none is left that may."""
        before, may = self._ended(), len(self.trials) * (self._all - self.turns)
        until(lambda: self._ended() >= min(before + turns, may), within=5)

    def _kill(self, number: int) -> None:
        self.hubs[number].kill()
        self.hubs[number].start()

    def _cut(self) -> None:
        for laptop in self.laptops:
            for link in laptop.links:
                link.cut()

    def _restart(self) -> None:
        self.server.stop()
        self.server.start()


@contextmanager
def team(path: Path, server: Server, laptops: int, proxies: int, turns: int) -> Iterator[Team]:
    """So many proxies on each laptop, all of which have started; each has so many turns."""
    url = server.create(path.name)
    with ExitStack() as stack:
        to_database = stack.enter_context(linked(server.port))
        by_link = url.replace(f":{server.port}/", f":{to_database.port}/")
        hubs = [HubProcess(path, by_link, name) for name in ("first", "second")]
        for hub in hubs:
            stack.callback(hub.kill)
            hub.start()
        ours = Team(url, server, hubs, [_laptop(stack, path, url, hubs, n) for n in range(laptops)], to_database, turns)
        ours.allow(1)
        for laptop in ours.laptops:
            laptop.trials += [stack.enter_context(laptop.home.trial(turns, kept=turns)) for _ in range(proxies)]
        for trial in ours.trials:
            trial.pid("agent")
        stack.enter_context(_watched(ours))
        yield ours


def _laptop(stack: ExitStack, path: Path, url: str, hubs: list[HubProcess], number: int) -> Laptop:
    with closing(open_ledger(url, journals=())) as ledger:
        secret, _ = Store(ledger.tables, "default").tokens.make(Asked("laptop", f"user{number}"), "trial", 0)
    links = [stack.enter_context(linked(hub.port)) for hub in hubs]
    at = ",".join(f"http://127.0.0.1:{link.port}" for link in links)
    home = Home(path / f"laptop{number}", _CONFIG, at, extra={"ACP_PROXY_HUB_TOKEN": secret, "TURNS_AT_ONCE": "1"})
    return Laptop(home, links, [hub.port for hub in hubs])


@contextmanager
def _watched(team: Team) -> Iterator[None]:
    """Meanwhile the sum of all is compared with the limit again and again, at the database itself."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.3):
            with suppress(LedgerError):
                used = team.used()[0]
                team.most = max(team.most, used)
                team.free.append((time.time(), -used))

    thread = threading.Thread(target=watch, name="watch")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def pool() -> Account:
    """The budget's account, as the hubs name it."""
    budget = Budget("pool", "hub", Window.parse("total"), Limit(1, "USD"))
    subject = Subject("default", "anybody", None, None, "", "", None, None)
    return account_of(budget, subject, 0, ZoneInfo("UTC"), "")
