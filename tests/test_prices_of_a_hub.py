"""`acp-proxy prices` where a hub has prices for everybody: set, removed, and which of all prices hold."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.catalog import Catalog
from acp_proxy.cli import main
from acp_proxy.config import Config, Price, load
from acp_proxy.config.applied import price_sources, prices_under
from acp_proxy.core.windows import DAY
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.hub.policy import Changes
from acp_proxy.ledger.owners import Owner
from acp_proxy.policy.following import Followed
from harness import hub
from harness.rows import line, row
from tests.bills.made import Call, anthropic
from tests.importing.homes import Home
from tests.ledger.warned import Warnings
from tests.reconcile.month import FIRST

PEOPLE = {
    "root": Identity("root", "default", None, "administrator"),
    "ada": Identity("ada", "default", None, "administrator"),
    "olga": Identity("olga", "default", None, "finance"),
    "lead": Identity("bob", "default", "core", "lead", ("core",)),
    "alice": Identity("alice", "default", "core", "developer"),
}
OWN = """
[prices."big-model"]
input = "1"
output = "2"
[prices."own-model"]
input = "5"
"""
SET = ("set", "big-model", "--input", "3", "--output", "9")
Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with closing(open_ledger(f"sqlite:///{tmp_path}/hub.db", journals=())):
        pass
    with hub.running(f"sqlite:///{tmp_path}/hub.db", PEOPLE) as url:
        yield url


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / ".config/acp-proxy/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(OWN)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    return path


@pytest.fixture
def typed(url: str, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """As somebody: the status, stdout and stderr."""
    config.write_text(f'{OWN}\n[ledger]\nurl = "{url}"\n')

    def as_somebody(who: str, *words: str, command: str = "prices") -> tuple[int, str, str]:
        monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", who)
        status = main([command, *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return as_somebody


def shown(typed: Typed, who: str, model: str) -> tuple[Any, Any]:
    """What its input costs, and who says so."""
    found = json.loads(typed(who, "show", model, "--json")[1])
    return found["rates"].get("input"), found["source"]


def test_a_price_is_set_changed_and_removed_for_everybody_with_what_was_changed(typed: Typed) -> None:
    status, said, _ = typed("root", *SET)
    assert (status, said) == (
        0,
        'price "big-model": input 3, output 9\n'
        "It holds for everybody's turns from now on, but where a machine's administrator has set a price.\n",
    )
    assert typed("root", *SET)[1] == "It is so already.\n"
    again = typed("root", "set", "BIG-model", "--input", "4", "--context", "200000")[1]
    assert again.startswith('price "big-model": input 3 → 4, context none → 200000\n')
    assert shown(typed, "alice", "big-model") == ("4", "the hub, which goes before your own price")
    assert typed("root", "remove", "big-model")[1].startswith('price "big-model": removed\n')
    assert shown(typed, "alice", "big-model") == ("1", "configuration")


def test_a_price_is_in_the_history_and_is_taken_back_as_a_budget_is(typed: Typed) -> None:
    typed("root", *SET)
    assert (
        "root  added price  big-model  input 3, output 9" in typed("olga", "history", "big-model", command="budget")[1]
    )
    assert typed("root", "undo", command="budget")[1].startswith('price "big-model": removed\n')


def test_a_dry_run_shows_the_change_and_makes_none(typed: Typed) -> None:
    assert typed("root", *SET, "--dry-run")[1] == 'price "big-model": input 3, output 9\n'
    assert shown(typed, "root", "big-model")[0] == "1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("set", "other", "--input", "dear"), "policy: prices.other.input: expected"),
        (("set", "other", "--input", "-1"), "policy: prices.other.input: expected"),
        (("set", "other"), "prices set: expected a price, such as --input 3 --output 9"),
        (("remove", "big-modle"), "the hub has no price of big-modle: did you mean big-model?"),
        (("remove", "x"), "the hub has no price of x: it has big-model"),
        (("set", "big-model", "--input", "7", "--if-version", "7"), "prices were changed meanwhile by root, 2"),
        (("remove", "big-model", "--if-version", "0"), "prices were changed meanwhile by root, 2"),
    ],
)
def test_a_mistake_changes_nothing_and_is_told_in_one_line(typed: Typed, words: tuple[str, ...], says: str) -> None:
    typed("root", *SET)
    status, said, error = typed("root", *words)
    assert (status, said, error.count("\n")) == (2, "", 1)
    assert says in error
    assert shown(typed, "root", "big-model")[0] == "3"


@pytest.mark.parametrize(
    ("who", "says"),
    [
        ("alice", "expected the role administrator or lead, not developer; your own prices are those of "),
        ("olga", "expected the role administrator or lead, not finance; your own prices are those of "),
        ("lead", "price 'big-model' is an administrator's to set; a lead sets budgets"),
    ],
)
def test_who_may_not_is_told_who_may(typed: Typed, who: str, says: str) -> None:
    typed("root", *SET)
    for words in (("set", "big-model", "--input", "1"), ("remove", "big-model")):
        status, said, error = typed(who, *words)
        assert (status, said, error.count("\n")) == (2, "", 1)
        assert says in error
    assert shown(typed, "root", "big-model")[0] == "3"


def test_a_change_between_reading_and_changing_is_not_overwritten(
    typed: Typed, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("root", *SET)
    read = HubLedger.policy
    with closing(at_hub(url, "ada")) as other:

        def read_then_somebody_changes(ledger: HubLedger, tag: str | None) -> object:
            found = read(ledger, tag)
            if ledger is not other:
                other.change_policy(Changes(prices={"big-model": {"input": "8"}}))
            return found

        monkeypatch.setattr(HubLedger, "policy", read_then_somebody_changes)
        status, said, error = typed("root", "set", "big-model", "--input", "4")
        monkeypatch.undo()
    assert (status, said) == (2, "")
    assert "the hub's budgets and prices were changed meanwhile by ada, " in error


def test_a_list_says_whose_prices_it_has(typed: Typed) -> None:
    typed("root", "set", "hub-model", "--input", "3")
    _, said, _ = typed("alice", "list", "model")
    assert {"own-model", "hub-model", "big-model"} <= {line.split()[0] for line in said.splitlines()}
    assert said.splitlines()[-1].endswith(" and prices of the hub and prices of the configuration")


def test_a_hub_that_does_not_answer_has_the_prices_that_it_told_last(
    typed: Typed, url: str, config: Path, tmp_path: Path
) -> None:
    typed("root", *SET)
    followed = Followed(url, tmp_path / ".local/state/acp-proxy/hubs", "lease", lambda _: None, Owner("", 0, ""))
    with closing(at_hub(url, "alice")) as ledger:
        followed.refresh(ledger)
    status, said, error = typed("nobody", "show", "big-model", "--json")
    assert (status, json.loads(said)["rates"]["input"]) == (0, "3")
    assert error.endswith("; prices are those that the hub told last\n")
    config.write_text(f'{OWN}\n[ledger]\nurl = "http://127.0.0.1:1"\n')
    status, said, error = typed("alice", "show", "big-model", "--json")
    assert (status, json.loads(said)["rates"]["input"]) == (0, "1")
    assert error.endswith("; prices are those without the hub's\n")


def test_an_import_books_at_the_hubs_prices(typed: Typed, tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path / "local.db")
    home.put("claude", "tools")
    home.imports("claude-code")
    models = {str(line.model) for each in home.rows() for line in each.entry.lines}
    free = [f"--{kind}=0" for kind in ("input", "output", "cached-read", "cached-write", "cached-write-1h")]
    for model in models:
        assert typed("root", "set", model, *free)[0] == 0
    assert typed("alice", "claude-code", command="import")[0] == 0
    found, at_hub = home.rows(), Home(tmp_path, tmp_path / "hub.db").rows()
    assert len(at_hub) == len(found) > 0
    assert (sum(map(spent, found)) > 0, sum(map(spent, at_hub))) == (True, 0)
    assert all(line.cost is not None for each in at_hub for line in each.entry.lines)


def spent(row: Row) -> int:
    return sum(line.cost.nano for line in row.entry.lines if line.cost)


def test_a_budget_without_prices_admits_what_the_hub_has_a_price_for(typed: Typed, config: Path) -> None:
    strict = '[[budget]]\nname = "strict"\nwindow = "day"\non_unpriced = "deny"\n'
    config.write_text(f'{config.read_text()}{strict}limit = {{ amount = "5", currency = "USD" }}\n')
    asked = ("check", "--model", "hub-model", "--agent", "an-agent")
    assert typed("alice", *asked, command="budget")[0] == 3
    typed("root", "set", "hub-model", "--input", "3", "--output", "9")
    assert typed("alice", *asked, command="budget")[0] == 0


@pytest.fixture
def used(typed: Typed, url: str) -> str:
    """A model of the catalog for which the hub has another price, by which a turn of alice's is booked."""
    assert typed("root", "set", "claude-sonnet-5", "--input", "20", "--output", "20")[0] == 0
    with closing(at_hub(url, "alice")) as ledger:
        ledger.append([row(line("claude-sonnet-5", "0.0202", input=1000, output=10), at=FIRST * DAY)])
    return "claude-sonnet-5"


def test_an_export_has_the_public_price_beside_the_hubs(typed: Typed, used: str) -> None:
    status, said, _ = typed("alice", "--focus", "--json", "--since", "2026-11-01", command="export")
    (found,) = json.loads(said)["rows"]
    assert (status, found["BilledCost"]) == (0, "0.0202")
    assert 0 < float(found["ListCost"]) < 0.0202, "what is booked is taken for the public price where nobody set one"


def test_a_bill_is_compared_by_the_hubs_prices(typed: Typed, used: str, tmp_path: Path) -> None:
    """Of the tokens that the ledger has the bill then costs the same, and all of the rest is what it has not seen."""
    call = Call(FIRST, model=used, tokens=(2000, 0, 0, 0, 20), amount=Decimal("0.0404"))
    for file in anthropic([call]):
        (tmp_path / file.name).write_bytes(file.content)
    files = [str(tmp_path / file.name) for file in anthropic([call])]
    status, said, _ = typed("alice", "anthropic", *files, "--json", command="reconcile")
    (finding,) = json.loads(said)["findings"]
    assert (status, finding["kind"], finding["cost"]) == (0, "tokens_unseen", {"USD": "0.0202"})


def test_a_price_of_the_administrators_file_goes_before_the_hubs_in_whatever_spelling() -> None:
    names = ("claude-opus-5-5", "anthropic/claude-opus-5.5", "Claude-Opus-5-5")
    for ours in names:
        for theirs in names:
            final = of_files(admin={ours: Price("1")}, user={})
            assert answered(final, {theirs: Price("3")}) == ("1", "the administrator's file, which goes before the hub")
            own = of_files(admin={}, user={ours: Price("1")})
            assert answered(own, {theirs: Price("3")}) == ("3", "the hub, which goes before your own price")


def test_without_a_hub_the_file_and_what_it_needs_are_named(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prices", "set", "big-model", "--input", "3", "--cached-read", "0.3", "--context", "200000"]) == 2
    keys = 'input = "3", cached_read = "0.3", context = 200000'
    assert capsys.readouterr().err == (
        f"acp-proxy: no hub keeps this ledger: prices are those of {config}; "
        f'add [prices."big-model"] there, with {keys}\n'
    )
    assert main(["prices", "remove", "big-model"]) == 2
    assert capsys.readouterr().err.endswith(f'{config}; remove [prices."big-model"] there\n')
    assert config.read_text() == OWN


def at_hub(url: str, who: str) -> HubLedger:
    return HubLedger(
        url, time.time_ns, patience=5, warn=Warnings(), journals=(), authorization=lambda _: f"Bearer {who}"
    )


def of_files(admin: dict[str, Price], user: dict[str, Price]) -> Config:
    config = load({}, {})
    final = {("prices", name, "input"): price.input for name, price in admin.items()}
    pricing = replace(config.pricing, prices={**user, **admin})
    return replace(config, pricing=pricing, by_file={**config.by_file, "admin": final})


def answered(config: Config, policy: dict[str, Price]) -> tuple[str | None, str]:
    catalog = Catalog(config.pricing.prices)
    catalog.reprice(prices_under(config, policy), price_sources(config, policy))
    found = catalog.find("claude-opus-5-5")
    assert found is not None
    return found.row.steps[0].rates.texts["input"], found.row.source
