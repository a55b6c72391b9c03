"""Windows of plans as metrics: what is used of the fullest, and nothing of one that is over."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from msgspec.structs import replace

from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.core.windows import HOUR, SECOND
from acp_proxy.ledger import open_ledger
from harness.rows import ALICE, BOB, NOON, row
from tests.metrics.scrapes import Scraped, configuration, scrape

USED, RESET = "acp_proxy_plan_used_ratio", "acp_proxy_plan_reset_timestamp_seconds"
END = NOON + 5 * HOUR
FIVE = PlanWindow("five_hour", FULL * 62 // 100, "allowed", END, None, NOON)


def scraped(directory: Path, *told: tuple[str, PlanWindow], at: int = NOON) -> Scraped:
    """What users were told, as metrics at a time."""
    config = configuration(directory)
    ledger = open_ledger(config.ledger.url, journals=())
    ledger.append([row(), row(origin=BOB)])
    for user, window in told:
        ledger.note_plan(replace(ALICE, user=user), [window])
    found = scrape(ledger, config, clock=at / 1e9)
    ledger.close()
    return found


def test_a_window_has_what_is_used_and_its_reset(tmp_path: Path) -> None:
    found = scraped(tmp_path, ("alice", FIVE))
    labels = {"agent": ALICE.agent, "window": "five_hour"}
    assert found.value(USED, **labels) == Decimal("0.62")
    assert found.value(RESET, **labels) == END // SECOND


def test_of_several_users_the_fullest_is_shown(tmp_path: Path) -> None:
    fuller = replace(FIVE, used=FULL * 9 // 10, resets_at=END + HOUR)
    found = scraped(tmp_path, ("alice", FIVE), ("bob", fuller), ("carol", replace(FIVE, used=None)))
    assert list(found.samples(USED).values()) == [Decimal("0.9")]
    assert list(found.samples(RESET).values()) == [(END + HOUR) // SECOND]


def test_a_window_that_is_over_or_unknown_has_no_series(tmp_path: Path) -> None:
    found = scraped(
        tmp_path, ("alice", FIVE), ("alice", PlanWindow("week", None, "allowed", END + 1, None, NOON)), at=END
    )
    assert USED not in found
    assert list(found.samples(RESET)) == [frozenset({("agent", ALICE.agent), ("window", "week")})]


def test_words_that_agents_make_up_are_bounded(tmp_path: Path) -> None:
    many = [("alice", replace(FIVE, window=f"w{number:02}")) for number in range(30)]
    found = scraped(tmp_path, *many, ("alice", replace(FIVE, window="x" * 61)))
    shown = {dict(labels)["window"] for labels in found.samples(USED)}
    assert shown == {f"w{number:02}" for number in range(20)} | {"other"}
