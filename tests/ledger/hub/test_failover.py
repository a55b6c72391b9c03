"""A hub whose PostgreSQL fails over to a standby that lacks what was acknowledged."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import LedgerUnavailableError, Query, open_ledger
from acp_proxy.ledger.hub.ledger import HubLedger
from harness import hub
from harness.daemons import until
from harness.postgres import replicated
from harness.rows import NOON, row
from tests.ledger.warned import Warnings

PEOPLE = {who: Identity(who, "default", None, "developer") for who in ("alice", "bob")}


def test_a_standby_that_is_promoted_is_sent_what_it_lacks_by_each_machine(tmp_path: Path, warnings: Warnings) -> None:
    with replicated() as (primary, standby):
        primary.create("team")
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        settings = "target_session_attrs=read-write&options=-c%20synchronous_commit%3Dlocal"
        url = f"postgresql://owner@{hosts}/team?{settings}"
        with hub.running(url, PEOPLE, clock=lambda: NOON) as address:

            def proxy(who: str) -> HubLedger:
                return HubLedger(
                    address,
                    lambda: NOON,
                    patience=10,
                    warn=warnings,
                    journals=[tmp_path / who],
                    authorization=lambda _: f"Bearer {who}",
                )

            with closing(proxy("alice")) as alice, closing(proxy("bob")) as bob:
                for number, ledger in enumerate((alice, bob)):
                    ledger.append([row(id=f"both-{number}", session=str(number))])

                def there() -> list[str]:
                    with closing(open_ledger(standby.url("team"), journals=())) as shown:
                        return [each.entry.id for each in shown.rows(Query())]

                until(alice.is_sure, "the standby has what it could get")
                assert len(there()) == 2
                standby.stop("fast")
                for number, ledger in enumerate((alice, bob)):
                    ledger.append([row(id=f"lost-{number}", session=str(number))])
                assert alice.fails_over
                primary.stop()
                standby.start()
                standby.promote()
                assert there() == ["both-0", "both-1"]

                def goes_on() -> bool:
                    try:
                        return alice.append([row(id="next", session="0")]) == 1
                    except LedgerUnavailableError:
                        return False

                until(goes_on, "the hub has found the new primary")
                assert sorted(there()) == ["both-0", "both-1", "lost-0", "next"]
                assert not bob.is_sure()
                assert sorted(there()) == ["both-0", "both-1", "lost-0", "lost-1", "next"]
                assert warnings.events == ["ledger.went_back"] * 2
