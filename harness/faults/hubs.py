"""Two hubs in front of one PostgreSQL while proxies run under a budget that all of them share, and what goes wrong.

Each proxy reaches each hub through a link, and so do the hubs their database. What is looked for in the end: a turn
beyond the budget, a refusal while something was left of it, and a row that is lost, or there twice.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from acp_proxy.hub.store import Store
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import open_ledger
from harness.faults.link import Link, linked
from harness.faults.parties import COST
from harness.faults.trial import LIMIT, ROOT, Home, Trial, Verdict, until
from harness.ports import free_port
from harness.postgres import Server

_TOO_LITTLE = "too little left"
CONFIG = """
[ledger]
admission_timeout = "20s"
on_unavailable = "closed"
[[budget]]
name = "shared"
window = "total"
limit = {{ amount = "{amount}", currency = "USD" }}
hold = "{hold}"
"""


class HubProcess:
    """One hub that can be killed, and started again on its port."""

    def __init__(self, directory: Path, database: str, name: str) -> None:
        self.port = free_port()
        self._log = directory / f"{name}.log"
        self._config = directory / f"{name}.toml"
        self._config.write_text(f'[database]\nurl = "{database}"\n')
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "acp_proxy", "hub", "--config", str(self._config), "--port", str(self.port)]
        with self._log.open("ab") as log:
            environ = {"HOME": str(self._directory), "PATH": "/usr/bin:/bin"}
            self._process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log)
        assert until(self._answers), self._log.read_text()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        with closing(connection), suppress(OSError, HTTPException):
            connection.request("GET", "/livez")
            return connection.getresponse().status == 200
        return False


@dataclass
class Team:
    """Hubs, their database, and the machine of those who use them. `links` lead to the hubs, one each."""

    home: Home
    database: str
    server: Server
    hubs: list[HubProcess]
    links: list[Link]
    to_database: Link
    events: list[str] = field(default_factory=list)

    @property
    def troubles(self) -> dict[str, Callable[[], None]]:
        return {
            "the first hub is killed": lambda: self._kill(0),
            "the network is cut": self._cut,
            "PostgreSQL is restarted": self._restart,
            "the second hub is killed": lambda: self._kill(1),
            "the database's network is cut": self.to_database.cut,
            "a hub's network forgets": self.links[0].forget,
        }

    def _kill(self, number: int) -> None:
        self.hubs[number].kill()
        self.hubs[number].start()

    def _cut(self) -> None:
        for link in self.links:
            link.cut()

    def _restart(self) -> None:
        self.server.stop()
        self.server.start()


@contextmanager
def team(path: Path, server: Server, turns: int) -> Iterator[Team]:
    """With a budget for so many turns of everybody together."""
    url = server.create(path.name)
    with closing(open_ledger(url, journals=())) as ledger:
        asked = Asked("proxies", "everybody", "administrator")
        secret, _ = Store(ledger.tables, "default").tokens.make(asked, "trial", 0)
    amount = float(COST) * turns
    with ExitStack() as stack:
        to_database = stack.enter_context(linked(server.port))
        by_link = url.replace(f":{server.port}/", f":{to_database.port}/")
        hubs = [HubProcess(path, by_link, name) for name in ("first", "second")]
        for hub in hubs:
            stack.callback(hub.kill)
            hub.start()
        links = [stack.enter_context(linked(hub.port)) for hub in hubs]
        at = ",".join(f"http://127.0.0.1:{link.port}" for link in links)
        config = CONFIG.format(amount=amount, hold=COST)
        home = Home(path / "home", config, at, extra={"ACP_PROXY_HUB_TOKEN": secret})
        yield Team(home, url, server, hubs, links, to_database)


@dataclass
class Outcome:
    """Turns. All four of these are to be 0."""

    verdict: Verdict
    limit: int
    refused_by_budget: int

    @property
    def overspent(self) -> int:
        return max(0, self.verdict.booked.total() - self.limit)

    @property
    def phantom_refusals(self) -> int:
        """That said the budget had too little left, although less than it was used when all had ended."""
        return self.refused_by_budget if self.verdict.booked.total() < self.limit else 0

    @property
    def lost(self) -> int:
        return len(self.verdict.lost)

    @property
    def doubled(self) -> int:
        return len(self.verdict.doubled)

    @property
    def defects(self) -> list[str]:
        found = {"overspent": self.overspent, "phantom refusals": self.phantom_refusals}
        return [f"{name}: {number}" for name, number in found.items() if number] + self.verdict.defects


def round_of_troubles(team: Team, chance: random.Random, proxies: int, turns: int, limit: int) -> Outcome:
    """Everything that goes wrong, in any order, in the first half of their turns; then they use up what is left."""
    with ExitStack() as stack:
        trials = [stack.enter_context(team.home.trial(turns, kept=turns // 2)) for _ in range(proxies)]
        for trial in trials:
            trial.pid("agent")
        troubles = list(team.troubles.items())
        chance.shuffle(troubles)
        for name, happens in troubles:
            _until_more(trials, 2 * proxies)
            team.events.append(name)
            happens()
        for trial in trials:
            trial.go_on()
        for trial in trials:
            trial.until_over()
    return outcome(team, trials, limit)


def outcome(team: Team, trials: list[Trial], limit: int) -> Outcome:
    """Once all have ended: what a relay could not hand on, the next command does, as on any machine."""
    doctor = [sys.executable, "-m", "acp_proxy", "doctor", "--ledger", team.home.url]
    environ = {**team.home.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(doctor, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, check=False)
    verdict = Home(team.home.path, url=team.database).verdict(*trials)
    said = [said for trial in trials for said in trial.noted("said")]
    return Outcome(verdict, limit, sum(_TOO_LITTLE in each for each in said))


def _until_more(trials: list[Trial], turns: int) -> None:
    """Returns when so many turns more have ended, or none is left that may."""

    def ended() -> int:
        return sum(len(trial.noted("acked")) + len(trial.noted("refused")) for trial in trials)

    before = ended()
    until(lambda: ended() >= before + turns or not _go_on(trials), within=min(LIMIT, 20))


def _go_on(trials: list[Trial]) -> bool:
    return any(len(trial.noted("asked")) > len(trial.noted("acked")) + len(trial.noted("refused")) for trial in trials)
