"""Ways around an administrator's budget, each tried: it is closed, or the administrator is told how to close it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from acp_proxy.config import Config, load
from acp_proxy.config.applied import catalog_of
from acp_proxy.core.budget import Budget
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.doctor.budgets import budget_troubles
from acp_proxy.ledger import open_ledger

BUDGET = '[[budget]]\nname = "a"\nper = "user"\nwindow = "day"\nlimit = { amount = "5", currency = "USD" }\n'


class Machine:
    """One on which the administrator's file says who pays and where; `own` is what the user's file says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.admin = root / "admin.toml"
        self.url = f"sqlite:///{root}/shared/ledger.db"
        identity = '[identity]\norganisation = "acme"\nuser = "alice"\nteam = "core"\n'
        self.closed = f'{identity}[ledger]\nurl = "{self.url}"\non_unavailable = "closed"\n{BUDGET}'
        self.admin.write_text(self.closed)

    def load(
        self, own: str = "", options: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
    ) -> Config:
        file = self.root / ".config/acp-proxy/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(own)
        return load(options or {}, {"HOME": str(self.root), "USER": "alice", **(environ or {})}, admin_file=self.admin)

    def troubles(self, config: Config) -> list[str]:
        """What `doctor` says of the administrator's budget."""
        ledger = open_ledger(self.url, journals=())
        try:
            return next(troubles for budget, troubles in budget_troubles(config, ledger) if budget.layer == "admin")
        finally:
            ledger.close()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def admins(config: Config) -> Budget:
    (found,) = (budget for budget in config.budgets if budget.layer == "admin")
    return found


WEAKER = BUDGET.replace('"5"', '"5000"') + 'mode = "shadow"\non_unavailable = "open"\n'


@pytest.mark.parametrize(
    ("own", "options", "environ"),
    [
        ("", {"ledger": "sqlite:////tmp/mine.db"}, {}),
        ("", {"user": "bob"}, {}),
        ("", {"team": "free"}, {}),
        ("", {"config": "/dev/null"}, {}),
        ("", {}, {"USER": "bob", "LOGNAME": "bob"}),
        ("", {}, {"HOME": "/nonexistent"}),
        ("", {}, {"XDG_CONFIG_HOME": "/nonexistent", "XDG_STATE_HOME": "/nonexistent", "XDG_RUNTIME_DIR": "/nope"}),
        ("", {}, {"ACP_PROXY_IDENTITY__USER": "bob", "ACP_PROXY_IDENTITY__ORGANISATION": "mine"}),
        ("", {}, {"ACP_PROXY_LEDGER__URL": "sqlite:////tmp/mine.db", "ACP_PROXY_LEDGER__ON_UNAVAILABLE": "open"}),
        ('[identity]\nuser = "bob"\norganisation = "mine"\n', {}, {}),
        ('[ledger]\nurl = "sqlite:////tmp/mine.db"\non_unavailable = "open"\n', {}, {}),
        (WEAKER, {}, {}),
        (WEAKER, {"budget": "5000"}, {}),
    ],
    ids=str,
)
def test_what_the_administrator_set_stands(
    machine: Machine, own: str, options: dict[str, str], environ: dict[str, str]
) -> None:
    before, after = machine.load(), machine.load(own, options, environ)
    assert admins(after) == admins(before)
    assert (admins(after).limit.amount, admins(after).mode) == (Money.of("5", "USD").nano, "enforce")
    assert admins(after).on_unavailable == "closed"
    who = after.identity
    assert (who.organisation, who.user, who.team) == ("acme", "alice", "core")
    assert after.ledger.url == machine.url
    assert machine.troubles(after) == []


@pytest.mark.parametrize("key", ["organisation", "user"])
def test_whoever_pays_but_is_not_named_can_be_chosen_and_doctor_says_so(machine: Machine, key: str) -> None:
    """Another organisation or user has nothing spent."""
    machine.admin.write_text("".join(line for line in machine.closed.splitlines(True) if not line.startswith(key)))
    config = machine.load("", {}, {f"ACP_PROXY_IDENTITY__{key.upper()}": "mine"})
    assert getattr(config.identity, key) == "mine"
    assert machine.troubles(config)[0].startswith(f"identity.{key} is not set in the administrator's file")


def test_a_ledger_that_is_not_named_is_the_users_to_choose_and_doctor_says_so(machine: Machine) -> None:
    machine.admin.write_text("".join(line for line in machine.closed.splitlines(True) if not line.startswith("url")))
    config = machine.load("", {}, {"XDG_STATE_HOME": str(machine.root / "elsewhere")})
    assert machine.troubles(config)[0].startswith("ledger.url is not set in the administrator's file")


COUNTING = {
    "prices.claude-opus-5-5": '[prices."claude-opus-5-5"]\ninput = "0"\noutput = "0"\n',
    "aliases.default": '[aliases]\ndefault = "cheap"\n',
    "agents.claude": '[agents.claude]\nscope = "last_call"\n',
    "pricing.cache_write": '[pricing]\ncache_write = "5m"\n',
}


@pytest.mark.parametrize("name", COUNTING)
def test_what_the_user_says_of_costs_counts_where_the_administrator_says_nothing_and_doctor_names_it(
    machine: Machine, name: str
) -> None:
    assert machine.troubles(machine.load(COUNTING[name])) == [
        f"the user's own file sets {name}, which changes what it counts"
    ]
    counts = COUNTING[name].replace('"0"', '"9"').replace("cheap", "dear").replace("last_call", "turn")
    machine.admin.write_text(counts.replace("5m", "1h") + machine.closed)
    after = machine.load(COUNTING[name])
    assert (after.pricing, after.aliases, after.agents) == (
        machine.load().pricing,
        machine.load().aliases,
        machine.load().agents,
    )
    assert machine.troubles(after) == []


SPELLINGS = (
    "Claude-Opus-5.5",
    "anthropic/claude-opus-5-5",
    "claude-opus-5-5[1m]",
    "claude-opus-5-5/high",
    "default[high]",
)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_the_administrator_says_of_a_model_stands_however_the_user_spells_it(
    machine: Machine, spelling: str
) -> None:
    machine.admin.write_text(
        f'{machine.closed}[prices."claude-opus-5-5"]\ninput = "4"\noutput = "20"\n'
        '[aliases]\ndefault = "claude-opus-5-5"\n'
    )
    table = "aliases" if "default" in spelling else "prices"
    says = '"cheap"' if table == "aliases" else '{ input = "0", output = "0" }'
    config = machine.load(f'[{table}]\n"{spelling}" = {says}\n')
    assert catalog_of(config).price(spelling, Usage(input=1_000_000), 0).cost == Money.of("4", "USD")
    assert config.overruled
    assert machine.troubles(config) == []


def test_what_the_administrator_says_of_one_effort_or_window_leaves_the_model_open(machine: Machine) -> None:
    machine.admin.write_text(
        f'{machine.closed}[prices."gpt-5.5/high"]\ninput = "9"\noutput = "9"\n[aliases]\n"opus[1m]" = "dear"\n'
    )
    config = machine.load('[prices."gpt-5.5"]\ninput = "1"\noutput = "1"\n[aliases]\nopus = "gpt-5.5"\n')
    prices = [catalog_of(config).price(model, Usage(input=1_000_000), 0).cost for model in ("opus", "gpt-5.5/high")]
    assert prices == [Money.of("1", "USD"), Money.of("9", "USD")]


def test_a_budget_for_an_agent_goes_by_a_name_that_the_user_may_choose_and_doctor_says_so(machine: Machine) -> None:
    machine.admin.write_text(machine.closed + 'scope = { agent = "claude*" }\n')
    config = machine.load("", {"agent": "mine"})
    assert config.run.agent == "mine"
    assert machine.troubles(config) == ["it depends on the agent's name, which the agent reports and --agent overrides"]


def test_a_budget_for_a_project_goes_by_a_name_that_the_user_may_choose_and_doctor_says_so(machine: Machine) -> None:
    machine.admin.write_text(machine.closed.replace('"user"', '"project"'))
    config = machine.load("", {"project": "mine"})
    assert config.identity.project == "mine"
    assert machine.troubles(config) == [
        "it depends on the project's name, which is a directory's or its origin's, and --project overrides"
    ]
    machine.admin.write_text(
        config_with_project := machine.admin.read_text().replace("[ledger]", 'project = "shop"\n[ledger]')
    )
    assert 'project = "shop"' in config_with_project
    assert machine.troubles(machine.load("", {"project": "mine"})) == []


def test_what_the_environment_says_of_costs_counts_and_doctor_names_it(machine: Machine) -> None:
    environ = {"ACP_PROXY_PRICES__mine__INPUT": "0", "ACP_PROXY_PRICING__CACHE_WRITE": "1h"}
    assert machine.troubles(machine.load("", {}, environ)) == [
        "the environment sets prices.mine and pricing.cache_write, which changes what it counts"
    ]


@pytest.mark.parametrize(
    ("own", "environ"), [("[run]\nestimate = false\n", {}), ("", {"ACP_PROXY_RUN__ESTIMATE": "no"})]
)
def test_who_lets_nothing_be_estimated_spends_uncounted_with_agents_that_report_nothing_and_doctor_says_so(
    machine: Machine, own: str, environ: dict[str, str]
) -> None:
    assert machine.troubles(machine.load(own, {}, environ)) == [
        "the user has set run.estimate = false: agents that report no usage count nothing"
    ]
    machine.admin.write_text(f"[run]\nestimate = true\n{machine.closed}")
    config = machine.load(own, {}, environ)
    assert config.run.estimate
    assert machine.troubles(config) == []
