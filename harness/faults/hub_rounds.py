"""Rounds in which everything goes wrong with two hubs and many laptops, and what of it must be 0.

Looked for are a moment at which spent, held and lent are more than the limit together; a refusal while something was
left; and a row that is lost, or there twice.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field

from acp_proxy.core.money import Money
from acp_proxy.ledger import Query, open_reader
from harness.faults.hubs import LENT, Laptop, Team
from harness.faults.parties import COST
from harness.faults.trial import LIMIT, until

_WAIT = 6.0  # seconds that a prompt waits for its hub at most, on a busy machine
_TOO_LITTLE = "too little left"
_NANO = Money.of(COST, "USD").nano


@dataclass
class Outcome:
    """Turns of one round; of `overspent`, `phantom_refusals`, `lost` and `doubled` there are to be none."""

    turns: int  # that were acknowledged
    offline: int  # of these, on a laptop that was offline
    refused: int  # by the budget
    unchecked: int  # refused because no hub answered and nothing more was lent
    overspent: int
    phantom_refusals: int
    lost: int
    doubled: int
    faults: list[str] = field(default_factory=list)

    @property
    def defects(self) -> list[str]:
        names = ("overspent", "phantom_refusals", "lost", "doubled")
        return [f"{name}: {number}" for name in names if (number := getattr(self, name))] + self.faults


def round_of_troubles(team: Team, chance: random.Random, first: int, then: int) -> Outcome:
    """Everything that goes wrong, in any order, while each proxy has its `first` turns and nobody comes near the limit;
    one turn of each with all healed; then everybody has `then` more, for which the budget is too small.
    """
    proxies = len(team.trials)
    before, team.most = _Seen.of(team), 0
    lendable = LENT * len(team.laptops) + proxies  # and what turns hold beside leases
    room = sum(before.rows.values()) + proxies * (first + 1) + lendable
    team.allow(room * 2)
    team.go_on(first)
    offline = _offline_for_a_while(team, chance)
    team.until_ended()
    team.go_on(1)
    team.until_ended()
    team.allow(_settled(team) + proxies * then // 2)
    team.go_on(then)
    team.until_ended()
    _settled(team)
    after = _Seen.of(team)
    refused = after.too_little[len(before.too_little) :]
    return Outcome(
        len(after.acked) - len(before.acked),
        offline,
        len(refused),
        after.refused - before.refused - len(refused),
        team.most,
        sum(_is_phantom(team, when) for when in refused),
        len(after.acked - after.rows.keys()),
        sum(1 for number in after.rows.values() if number > 1),
        after.faults,
    )


def _offline_for_a_while(team: Team, chance: random.Random) -> int:
    """Half of the laptops at some time of the troubles; how many turns ended there meanwhile."""
    troubles = list(team.troubles.items())
    chance.shuffle(troubles)
    away = chance.sample(team.laptops, max(1, len(team.laptops) // 2))
    team.events.clear()
    ended = 0
    for number, (name, happens) in enumerate(troubles):
        team.until_more(len(team.trials) // 3)
        if number in (1, 4):
            some = away[::2] if number == 1 else away[1::2]
            ended += _away(some)
            team.events.append(f"{len(some)} laptops were offline")
        team.events.append(name)
        happens()
    return ended


def _away(laptops: list[Laptop]) -> int:
    trials = [trial for laptop in laptops for trial in laptop.trials]
    before = sum(trial.acked for trial in trials)
    for laptop in laptops:
        laptop.go_offline()
    until(lambda: sum(trial.acked for trial in trials) >= before + 2 * len(laptops), within=12)
    ended = sum(trial.acked for trial in trials) - before
    for laptop in laptops:
        laptop.go_online()
    return ended


def _is_phantom(team: Team, when: float) -> bool:
    """Whether at no time while the prompt waited there was too little for it."""
    around = [free for at, free in team.free if when - _WAIT <= at <= when + 1]
    around += [free for at, free in team.free if at < when - _WAIT][-1:]
    return bool(around) and min(around) >= _NANO


def _settled(team: Team) -> int:
    """Returns when the ledger has all rows that it will have; how many turns are spent, held and lent then."""
    acked = {session for trial in team.trials for session in trial.noted("acked")}
    until(lambda: acked <= _Seen.rows_of(team).keys(), within=3 * LIMIT)
    held = [-1, team.used()[1]]
    for _ in range(20):
        if held[-1] == held[-2]:
            break
        time.sleep(0.5)  # leases still come and go
        held.append(team.used()[1])
    return held[-1] // _NANO


@dataclass
class _Seen:
    """What all clients noted so far, and what the ledger has."""

    acked: set[str]
    refused: int
    too_little: list[float]  # when, in Unix s
    faults: list[str]
    rows: Counter[str]

    @classmethod
    def of(cls, team: Team) -> _Seen:
        trials = team.trials
        told = [told for trial in trials for told in trial.noted("when") if _TOO_LITTLE in told]
        return cls(
            {session for trial in trials for session in trial.noted("acked")},
            sum(len(trial.noted("refused")) for trial in trials),
            sorted(float(each.split()[0]) for each in told),
            [fault for trial in trials for fault in trial.noted("fault")],
            cls.rows_of(team),
        )

    @staticmethod
    def rows_of(team: Team) -> Counter[str]:
        with closing(open_reader(team.database, journals=())) as reader:
            return Counter(row.entry.session for row in reader.rows(Query()))
