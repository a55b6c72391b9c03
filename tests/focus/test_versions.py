"""Each version of FOCUS beside what its specification says of columns (`specification.json`).

That is of 1.2 its text, of 1.4 the foundation's data model, and of 1.3 what both have in common and say of each other.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.catalog import Catalog
from acp_proxy.config import Price
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import HOUR
from acp_proxy.focus import costs
from acp_proxy.focus.columns import VERSIONS, Version, columns_of
from acp_proxy.focus.formats import as_csv, as_json
from acp_proxy.focus.rows import Market, rows
from acp_proxy.ledger import Ledger, Query, Row, open_ledger
from acp_proxy.text import times
from harness.rows import BOB, NOON, line, row

SPECIFIED: dict[str, Any] = json.loads(Path(__file__).with_name("specification.json").read_text())
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
UNKNOWN_COST = {*costs.COSTS, "BillingCurrency"}  # what is empty where no cost is known, on purpose


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    yield ledger
    ledger.close()


def exported(ledger: Ledger, version: Version, *given: Row, market: Market | None = None) -> list[dict[str, str]]:
    """As whoever reads the file sees it."""
    ledger.append(given)
    market = market or Market(Catalog().lab, lambda model, usage, at: None)
    found = rows(ledger, Query(), "default", times.UTC_ZONE, market, version)
    return list(csv.DictReader(io.StringIO("".join(as_csv(found, version)))))


def wrong(column: str, value: str, version: Version) -> str | None:
    """What the specification does not allow of a cell."""
    of = SPECIFIED[column]
    if value == "":
        return None if of["nulls"] else f"{column} is empty"
    if value not in of.get("allowed", [value]):
        return f"{column} {value!r} is none of those that are allowed"
    match of["type"]:
        case "Decimal":
            Decimal(value)
        case "Date/Time" if not TIME.fullmatch(value):
            return f"{column} {value!r} is no time of UTC"
        case "JSON":
            return None if isinstance(json.loads(value), dict) else f"{column} is no object"
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_has_the_columns_that_it_makes_mandatory_or_recommends_and_no_unknown_one(version: Version) -> None:
    levels = {name: of["level"].get(version) for name, of in SPECIFIED.items()}
    of_focus = {name for name in columns_of(version) if not name.startswith("x_")}
    assert {name for name, level in levels.items() if level == "Mandatory"} <= of_focus
    assert {name for name, level in levels.items() if level == "Recommended"} - of_focus <= {
        "AllocatedMethodDetails",  # nothing is split
        "AvailabilityZone",  # not known
    }
    assert [name for name in of_focus if levels.get(name) is None] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_cell_is_as_the_version_asks_for_it_but_for_costs_that_are_not_known(
    ledger: Ledger, version: Version
) -> None:
    found = exported(
        ledger,
        version,
        row(line("claude-sonnet-5")),
        row(line(None, "1"), kind="side", origin=BOB),
        row(line("m", "2", "EUR")),
        row(line("unpriced", None)),
    )
    said = {wrong(name, one[name], version) for one in found for name in one if not name.startswith("x_")}
    assert said - {None} == {f"{name} is empty" for name in UNKNOWN_COST}
    priced = [one for one in found if one["SkuId"] != "unpriced"]
    assert len(priced) == 3
    assert {wrong(name, one[name], version) for one in priced for name in UNKNOWN_COST} == {None}


def test_a_service_provider_stands_in_place_of_the_provider_from_1_3_and_beside_it_in_1_3(ledger: Ledger) -> None:
    ledger.append([row(line("claude-sonnet-5"))])
    names = ("ProviderName", "PublisherName", "ServiceProviderName", "HostProviderName")
    seen = {version: [exported(ledger, version)[0].get(name) for name in names] for version in VERSIONS}
    assert seen == {
        "1.2": ["anthropic", "anthropic", None, None],
        "1.3": ["anthropic", "anthropic", "anthropic", ""],
        "1.4": [None, None, "anthropic", ""],
    }


def test_json_says_its_version_and_has_the_same_columns(ledger: Ledger) -> None:
    ledger.append([row(line())])
    for version in VERSIONS:
        market = Market(Catalog().lab, lambda model, usage, at: None)
        found = rows(ledger, Query(), "default", times.UTC_ZONE, market, version)
        said = json.loads("".join(as_json(found, version)))
        assert (said["focus"], tuple(said["rows"][0])) == (version, columns_of(version))


def test_a_price_of_ones_own_is_what_was_agreed_and_the_packaged_one_is_the_list_price(ledger: Ledger) -> None:
    """Of Claude Sonnet 5 in November 2026 a million tokens of output are 15 dollars by the list."""
    own = Catalog({"claude-sonnet-5": Price(input="1", output="5")})
    public = Catalog()
    market = Market(own.lab, costs.list_price(own, public))
    given = row(line("claude-sonnet-5", "0.5", input=0, output=100_000), cost_source="computed")
    (only,) = exported(ledger, "1.4", given, market=market)
    listed = public.price("claude-sonnet-5", Usage(output=100_000), NOON).cost
    assert listed is not None
    assert [only[name] for name in ("BilledCost", "ContractedCost", "EffectiveCost")] == ["0.5"] * 3
    assert only["ListCost"] == listed.text != "0.5"


def test_the_list_price_is_what_was_booked_where_the_price_is_nobodys_own(ledger: Ledger) -> None:
    """Or the agent told its cost, or a part of the tokens has none, or it is in another currency."""
    own = Catalog({"claude-sonnet-5": Price(input="1", output="5")})
    market = Market(own.lab, costs.list_price(own, Catalog()))

    found = exported(
        ledger,
        "1.2",
        row(line("claude-opus-5-5", "0.5", output=100_000), cost_source="computed"),
        row(line("claude-sonnet-5", "0.6", output=100_000), cost_source="agent"),
        row(line("claude-sonnet-5", "0.7", "EUR", output=100_000), cost_source="computed", origin=BOB),
        row(line("claude-sonnet-5", "0.8", output=100_000), cost_source="computed", at=NOON + 24 * HOUR),
        row(line("claude-sonnet-5", None, output=100_000), cost_source="computed", at=NOON + 24 * HOUR),
        market=market,
    )
    assert sorted(one["ListCost"] for one in found) == ["0.5", "0.6", "0.7", "0.8"]


def test_an_effective_cost_is_what_was_booked_where_nothing_was_paid_in_advance(ledger: Ledger) -> None:
    (only,) = exported(ledger, "1.4", row(line(cost="0.25")))
    assert only["EffectiveCost"] == only["BilledCost"] == Money(250_000_000, "USD").text


def test_each_row_is_of_one_team_so_that_nothing_is_split(ledger: Ledger) -> None:
    found = exported(ledger, "1.4", row(line(cost="1")), row(line(cost="2"), origin=BOB))
    assert {one["SubAccountId"]: one["BilledCost"] for one in found} == {"core": "1", "": "2"}
    assert not any(name.startswith("Allocated") for name in columns_of("1.4"))
