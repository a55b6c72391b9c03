"""`acp-proxy budget add|set|remove|undo` on a real file, and `acp-proxy config`, which says where values come from."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.machine import Machine

FILE = """\
# my settings
[ledger]
admission_timeout = "2s"   # far away

[[budget]]  # the first
name = "turns"
window = "day"   # each day
limit = { turns = 5 }
# the end"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def config_of(machine: Machine) -> Path:
    return machine.home / ".config/acp-proxy/config.toml"


@pytest.fixture
def config(machine: Machine) -> Path:
    path = config_of(machine)
    path.parent.mkdir(parents=True)
    path.write_text(FILE)
    return path


def budgets(path: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = tomllib.loads(path.read_text())["budget"]
    return found


def test_a_budget_is_added_behind_what_is_there_and_the_change_is_shown(machine: Machine, config: Path) -> None:
    asked = ("--amount", "5", "--window", "day", "--per", "user", "--scope", "team=core", "--mode", "warn")
    told = machine.answer("budget", "add", "daily", *asked)
    assert config.read_text().startswith(FILE)
    assert budgets(config)[1] == {
        "name": "daily",
        "per": "user",
        "scope": {"team": "core"},
        "window": "day",
        "limit": {"amount": "5", "currency": "USD"},
        "mode": "warn",
    }
    assert '+name = "daily"' in told


def test_the_first_budget_makes_a_private_file_and_undo_removes_it(machine: Machine) -> None:
    path = config_of(machine)
    machine.answer("budget", "add", "weekly", "--tokens", "2000000", "--window", "7d")
    assert budgets(path) == [{"name": "weekly", "window": "7d", "limit": {"tokens": 2_000_000}}]
    assert path.stat().st_mode & 0o777 == 0o600
    machine.answer("budget", "undo")
    assert not path.exists()


def test_a_change_leaves_comments_and_all_other_bytes(machine: Machine, config: Path) -> None:
    machine.answer("budget", "set", "turns", "--window", "month")
    assert config.read_text() == FILE.replace('window = "day"', 'window = "month"')


def test_what_is_removed_leaves_the_comments_around_it(machine: Machine, config: Path) -> None:
    machine.answer("budget", "add", "daily", "--amount", "5", "--window", "day")
    machine.answer("budget", "remove", "daily")
    assert config.read_text() == f"{FILE}\n"
    machine.answer("budget", "remove", "turns")
    assert config.read_text() == FILE.partition("[[budget]]")[0] + "# the end\n"


def test_undo_takes_back_the_last_change_byte_for_byte_and_once(machine: Machine, config: Path) -> None:
    machine.answer("budget", "remove", "turns")
    machine.answer("budget", "undo")
    assert config.read_text() == FILE
    assert "nothing to undo" in machine.complaint("budget", "undo")


def test_undo_takes_back_nothing_of_a_file_that_was_changed_by_hand(machine: Machine, config: Path) -> None:
    machine.answer("budget", "set", "turns", "--turns", "6")
    config.write_text(changed := f"{config.read_text()}\n# mine\n")
    assert "was changed by hand since" in machine.complaint("budget", "undo")
    assert config.read_text() == changed


def test_a_dry_run_shows_the_change_and_writes_nothing(machine: Machine, config: Path) -> None:
    told = machine.answer("budget", "set", "turns", "--turns", "6", "--dry-run")
    assert "turns = 6" in told
    assert config.read_text() == FILE


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("add turns --amount 5 --window day", 'budget "turns" is there already'),
        ("add x --amount 5", "expected --window"),
        ("add x --window day", "expected a limit"),
        ("add x --amount many --window day", "budget.limit.amount: expected"),
        ("add x --amount 5 --window dayly", 'did you mean "day"?'),
        ("add x --amount 5 --window day --scope core", "--scope: expected KEY=VALUE"),
        ("add x --amount 5 --window day --scope hobby=core", "budget.scope"),
        ("add x --currency EUR --turns 5 --window day", "--currency: expected --amount"),
        ("set turn --turns 6", "did you mean turns?"),
        ("set turns", "expected what to change"),
        ("remove x", 'no budget "x"'),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(machine: Machine, config: Path, asked: str, said: str) -> None:
    assert said in machine.complaint("budget", *asked.split())
    assert config.read_text() == FILE


def test_a_broken_file_is_left_as_it_is(machine: Machine, config: Path) -> None:
    config.write_text("[[budget]\n")
    assert "not valid TOML" in machine.complaint("budget", "add", "x", "--amount", "5", "--window", "day")
    assert config.read_text() == "[[budget]\n"


def test_every_value_of_the_configuration_is_shown_with_where_it_comes_from(machine: Machine, config: Path) -> None:
    environ = {"ACP_PROXY_IDENTITY__TEAM": "core"}
    told = machine.run("config", "--json", "--ledger", "~/other.db", environ=environ).stdout
    found = {each["key"]: (each["value"], each["source"]) for each in json.loads(told)}
    assert found["ledger.admission_timeout"] == ("2s", f"{config}:3")
    assert found["identity.team"] == ("core", "ACP_PROXY_IDENTITY__TEAM")
    assert found["ledger.url"] == ("~/other.db", "--ledger")
    assert found["run.summary"] == (True, "default")
    assert found["budget.turns.window"] == ("day", f"{config}:7")
    assert f"budget.turns.limit {{ turns = 5 }} {config}:8" in " ".join(machine.answer("config").split())


def test_no_secret_of_the_configuration_is_shown(machine: Machine, config: Path) -> None:
    config.write_text(
        '[ledger]\nurl = "postgresql://alice:s3cret@db/acp?sslpassword=s3cret"\n'
        '[[notify]]\nname = "leads"\nurl = "https://hooks.example.com/s3cret"\nsecret = "s3cret"\n'
    )
    told = machine.answer("config") + machine.answer("config", "--json")
    assert "alice" in told
    assert "s3cret" not in told
