"""Budgets as a file writes them, and the one line that each mistake in them gets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.config import Config, load
from acp_proxy.config.budgets import budgets_of
from acp_proxy.config.checks import amount
from acp_proxy.config.files import ConfigError, read
from acp_proxy.config.values import Refusing
from acp_proxy.core.budget import Budget, Limit
from acp_proxy.core.budget.plan_limits import PlanBudget
from acp_proxy.core.money import Money
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import Window

NEEDED = 'name = "a"\nwindow = "day"\nlimit = { amount = "5", currency = "USD" }\n'
EVERYTHING = """\
[[budget]]
name = "developer-daily"
scope = { user = "a*", team = "core", project = ["shop", "web"], agent = "claude*", model = ["opus", "*sonnet*"] }
per = "user"
window = "rolling:24h"
timezone = "Europe/Berlin"
limit = { amount = "30.5", currency = "EUR" }
rates = { USD = "0.92", credits = "0.04" }
mode = "warn"
thresholds = [100, 50, 50]
on_exceed = "cancel"
on_unpriced = "deny"
on_unavailable = "closed"
hold = "0.25"
"""

BILLED = Scope(without_plans=True)  # what a budget of money counts


def all_of(path: Path, text: str) -> tuple[Budget | PlanBudget, ...]:
    file = path / "config.toml"
    file.write_text(text, encoding="utf-8")
    return budgets_of(read(file), "user")


def budgets(path: Path, text: str) -> tuple[Budget, ...]:
    """Those that count what is spent."""
    return tuple(budget for budget in all_of(path, text) if isinstance(budget, Budget))


def test_only_name_window_and_limit_are_required(tmp_path: Path) -> None:
    (budget,) = budgets(tmp_path, f"[[budget]]\n{NEEDED}")
    assert budget == Budget("a", "user", Window("day"), Limit(5_000_000_000, "USD"), BILLED)
    assert (budget.mode, budget.thresholds, budget.hold) == ("enforce", (50, 80, 90, 100), "auto")
    assert (budget.on_exceed, budget.on_unpriced, budget.zone) == ("finish_turn", "warn", "UTC")


def test_every_key_arrives_where_it_is_read(tmp_path: Path) -> None:
    assert budgets(tmp_path, EVERYTHING) == (
        Budget(
            name="developer-daily",
            layer="user",
            window=Window("rolling", 24),
            limit=Limit(30_500_000_000, "EUR"),
            scope=Scope(("a*",), ("core",), ("shop", "web"), ("claude*",), ("opus", "*sonnet*"), without_plans=True),
            per="user",
            zone="Europe/Berlin",
            mode="warn",
            thresholds=(50, 100),
            on_exceed="cancel",
            on_unpriced="deny",
            on_unavailable="closed",
            hold=250_000_000,
            rates=(("USD", 920_000_000), ("credits", 40_000_000)),
        ),
    )


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("{ tokens = 2_000_000 }", Limit(2_000_000, "tokens")),
        ("{ turns = 0 }", Limit(0, "turns")),
        ('{ amount = "0", currency = "credits" }', Limit(0, "credits")),
        ('{ amount = "0.000000001", currency = "USD" }', Limit(1, "USD")),
    ],
)
def test_a_limit_is_money_tokens_or_turns(tmp_path: Path, limit: str, expected: Limit) -> None:
    (budget,) = budgets(tmp_path, f'[[budget]]\nname = "a"\nwindow = "day"\nlimit = {limit}\n')
    assert budget.limit == expected


def test_a_limit_and_a_scope_may_be_tables_of_their_own(tmp_path: Path) -> None:
    text = '[[budget]]\nname = "a"\nwindow = "day"\n[budget.limit]\nturns = 3\n[budget.scope]\nteam = "core"\n'
    (budget,) = budgets(tmp_path, text)
    assert (budget.limit, budget.scope) == (Limit(3, "turns"), Scope(team=("core",)))


def test_a_week_may_begin_on_any_day(tmp_path: Path) -> None:
    weekly = NEEDED.replace('"day"', '"week"')
    for lines, expected in (
        ("", Window("week")),
        ('week_start = "monday"', Window("week")),
        ('week_start = "Sunday"', Window("week", week_start="sunday")),
    ):
        (budget,) = budgets(tmp_path, f"[[budget]]\n{weekly}{lines}\n")
        assert budget.window == expected


def test_budgets_keep_the_order_of_the_file(tmp_path: Path) -> None:
    text = "".join(f"[[budget]]\n{NEEDED}".replace('"a"', f'"{name}"') for name in "zab")
    assert [budget.name for budget in budgets(tmp_path, text)] == ["z", "a", "b"]


_RATES = 'expected { USD = "0.92" } or the like: what one of another currency counts as in that of the limit'
_RATE = 'expected what one of it counts as in the currency of the limit, a decimal in quotes such as "0.92"'


def _with(line: str) -> str:
    """A file whose second budget has the line in question as its last, the tenth."""
    first = f"[[budget]]\n{NEEDED}".replace('"a"', '"first"')
    return f"{first}\n[[budget]]\n{NEEDED}{line}\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('mod = "warn"', "10: budget.mod: unknown key; did you mean budget.mode?"),
        ('limits = "5"', "10: budget.limits: unknown key; did you mean budget.limit?"),
        ('mode = "enforced"', '10: budget.mode: expected shadow, warn or enforce; did you mean "enforce"?'),
        ('per = "model"', "10: budget.per: expected user, team, project or agent"),
        ('week_start = "sunday"', '10: budget.week_start: expected window = "week" beside it, not "day"'),
        ('week_start = "monday"', '10: budget.week_start: expected window = "week" beside it, not "day"'),
        (
            'week_start = "sun"',
            "10: budget.week_start: expected monday, tuesday, wednesday, thursday, friday, saturday or sunday"
            '; did you mean "sunday"?',
        ),
        (
            "week_start = 7",
            "10: budget.week_start: expected monday, tuesday, wednesday, thursday, friday, saturday or sunday",
        ),
        ('on_exceed = "stop"', "10: budget.on_exceed: expected finish_turn, deny_next_tool or cancel"),
        ("on_unpriced = true", "10: budget.on_unpriced: expected warn, deny or estimate"),
        (
            'on_unavailable = "lokal"',
            '10: budget.on_unavailable: expected open, closed, local or lease; did you mean "local"?',
        ),
        (
            'timezone = "Europe/Berln"',
            "10: budget.timezone: expected a time zone such as Europe/Berlin or UTC, not 'Europe/Berln'",
        ),
        ('timezone = "../etc"', "10: budget.timezone: expected a time zone such as Europe/Berlin or UTC, not '../etc'"),
        ('thresholds = "50"', "10: budget.thresholds: expected a list of whole percents such as [50, 80, 100]"),
        ("thresholds = [0.5]", "10: budget.thresholds: expected a list of whole percents such as [50, 80, 100]"),
        ("thresholds = [0]", "10: budget.thresholds: expected percents from 1 to 1000"),
        ("scope = { team = [] }", "10: budget.scope.team: expected a name or a list of them, not an empty list"),
        ("scope = { team = 3 }", "10: budget.scope.team: expected text in quotes, not a number"),
        ('scope = { teem = "x" }', "10: budget.scope.teem: unknown key; did you mean budget.scope.team?"),
        (
            'scope = "core"',
            '10: budget.scope: expected { team = "core" } or the like; of user, team, project, agent and model',
        ),
        ('rates = "0.9"', f"10: budget.rates: {_RATES}"),
        ("rates = { EUR = 0.9 }", f'10: budget.rates.EUR: {_RATE}: write "0.9"'),
        ("rates = { EUR = 0.0 }", f"10: budget.rates.EUR: {_RATE}"),
        ('rates = { EUR = "0" }', f"10: budget.rates.EUR: {_RATE}, above 0"),
        ('rates = { EUR = "1:2" }', f"10: budget.rates.EUR: {_RATE}, above 0"),
        (
            'rates = { eur = "1" }',
            '10: budget.rates: expected a currency such as "USD"; did you mean "EUR"?',
        ),
        ('rates = { USD = "1" }', "10: budget.rates: expected currencies other than that of the limit, USD"),
        ("hold = 0.5", '10: budget.hold: expected an amount as a decimal in quotes, such as "30": write "0.5"'),
        ("hold = true", '10: budget.hold: expected "auto", an amount in quotes or a whole number, not true or false'),
        (
            'hold = { amount = "1", currency = "USD" }',
            '10: budget.hold: expected "auto", an amount in quotes or a whole number, not a table',
        ),
        ("hold = 5", '10: budget.hold: expected "auto" or an amount of USD in quotes, such as "0.50"'),
        ('hold = "0"', '10: budget.hold: expected "auto", or what a turn may cost, above 0'),
    ],
)
def test_a_mistake_names_file_line_key_and_what_was_expected(tmp_path: Path, line: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        budgets(tmp_path, _with(line))
    assert str(caught.value) == f"{tmp_path}/config.toml:{expected}"


def test_a_hold_is_in_the_unit_of_its_limit(tmp_path: Path) -> None:
    counted = '[[budget]]\nname = "runs"\nwindow = "day"\nlimit = { tokens = 9 }\n'
    assert [budget.hold for budget in budgets(tmp_path, f"{counted}hold = 5\n")] == [5]
    with pytest.raises(ConfigError) as caught:
        budgets(tmp_path, f'{counted}hold = "5"\n')
    assert str(caught.value) == f'{tmp_path}/config.toml:5: budget.hold: expected "auto" or a number of tokens'


def test_what_is_counted_has_no_rates(tmp_path: Path) -> None:
    text = '[[budget]]\nname = "runs"\nwindow = "day"\nlimit = { turns = 9 }\nrates = { USD = "1" }\n'
    with pytest.raises(ConfigError) as caught:
        budgets(tmp_path, text)
    assert (
        str(caught.value) == f"{tmp_path}/config.toml:5: budget.rates: expected none: a limit of turns counts no money"
    )


_AMOUNT = 'expected an amount from 0, such as "30" or "0.50"'
_LIMIT = (
    'expected { amount = "30", currency = "USD" }, { tokens = 2_000_000 }, { turns = 200 } or '
    '{ plan = "five_hour", percent = 80 }'
)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ('"5"', f"budget.limit: {_LIMIT}"),
        ("{}", f"budget.limit: {_LIMIT}"),
        ("{ tokens = 1, turns = 1 }", f"budget.limit: {_LIMIT}"),
        ('{ amount = "5" }', 'budget.limit: expected a currency beside the amount, such as currency = "USD"'),
        ('{ currency = "USD" }', f"budget.limit: {_LIMIT}"),
        ('{ amount = "-1", currency = "USD" }', f"budget.limit.amount: {_AMOUNT}"),
        ('{ amount = "NaN", currency = "USD" }', f"budget.limit.amount: {_AMOUNT}"),
        ('{ amount = "inf", currency = "USD" }', f"budget.limit.amount: {_AMOUNT}"),
        ('{ amount = "1e3", currency = "USD" }', f"budget.limit.amount: {_AMOUNT}"),
        ('{ amount = "", currency = "USD" }', f"budget.limit.amount: {_AMOUNT}"),
        (
            "{ amount = nan, currency = 'USD' }",
            'budget.limit.amount: expected an amount as a decimal in quotes, such as "30"',
        ),
        (
            "{ amount = 5, currency = 'USD' }",
            'budget.limit.amount: expected an amount as a decimal in quotes, such as "30": write "5"',
        ),
        (
            '{ amount = "99999999999", currency = "USD" }',
            "budget.limit.amount: expected an amount of at most 9,223,372,036",
        ),
        (
            '{ amount = "5", currency = "usd" }',
            'budget.limit.currency: expected a currency such as "USD"; did you mean "USD"?',
        ),
        (
            '{ amount = "5", currency = "tokens" }',
            'budget.limit.currency: expected a currency such as "USD"; a limit of tokens is { tokens = … }',
        ),
        ('{ amount = "5", currency = "USD", tokens = 5 }', f"budget.limit: {_LIMIT}"),
        ('{ amount = "5", turns = 5 }', f"budget.limit: {_LIMIT}"),
        ("{ tokens = -1 }", "budget.limit.tokens: expected a whole number from 0"),
        ("{ turns = 1.5 }", "budget.limit.turns: expected a whole number such as 200, not a number"),
        ("{ turns = true }", "budget.limit.turns: expected a whole number such as 200, not true or false"),
        (
            "{ dollars = 5 }",
            "budget.limit.dollars: unknown key; [budget.limit] has amount, currency, tokens, turns, plan and percent",
        ),
    ],
)
def test_a_limit_that_is_none_gets_one_line(tmp_path: Path, limit: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        budgets(tmp_path, f'[[budget]]\nname = "a"\nwindow = "day"\nlimit = {limit}\n')
    assert str(caught.value) == f"{tmp_path}/config.toml:4: {expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"[[budget]]\n{NEEDED}\n[[budget]]\n{NEEDED}",
            '7: budget.name: "a" is the name of another budget of this file',
        ),
        ('[[budget]]\nwindow = "day"\n', "1: budget.name: expected a name; each budget needs one of its own"),
        ('[[budget]]\nname = "a"\n', "1: budget.window: expected a window, such as day or month"),
        ('[[budget]]\nname = "a"\nwindow = "day"\n', f"1: budget.limit: {_LIMIT}"),
        (
            '[[budget]]\nname = "a"\nwindow = "monthly"\n',
            "3: budget.window: expected turn, session, day, week, month, quarter, total, or rolling:24h "
            "(1 to 87,600 hours), not 'monthly'; did you mean \"month\"?",
        ),
        ('[budget]\nname = "a"\n', "1: budget: expected tables, [[budget]]"),
        ('\nbudget = "5"\n', "2: budget: expected tables, [[budget]]"),
        ('budget = [{ nam = "x" }]\n', "1: budget.nam: unknown key; did you mean budget.name?"),
    ],
)
def test_a_budget_that_is_not_whole_gets_one_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        budgets(tmp_path, text)
    assert str(caught.value) == f"{tmp_path}/config.toml:{expected}"


# -- over the layers


class Machine:
    """What a user with these files, flags and variables gets."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, admin: str, user: str) -> None:
        (self.root / "admin.toml").write_text(admin, encoding="utf-8")
        own = self.root / ".config/acp-proxy/config.toml"
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(user, encoding="utf-8")

    def load(self, options: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> Config:
        environment = {"HOME": str(self.root), "USER": "login", **(environ or {})}
        return load(options or {}, environment, admin_file=self.root / "admin.toml")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


ADMINS = f"""\
[identity]
user = "alice"
team = "core"
[ledger]
url = "sqlite:////srv/ledger.db"
[prices.m]
input = "5"
[aliases]
default = "m"
[[budget]]
{NEEDED}"""


def test_the_budgets_of_all_layers_add_up(machine: Machine) -> None:
    machine.write(f"[[budget]]\n{NEEDED}", f"[[budget]]\n{NEEDED}".replace('"a"', '"b"'))
    found = machine.load({"budget": "2.5"}).budgets
    assert [(each.layer, each.name) for each in found] == [("admin", "a"), ("user", "b"), ("flag", "--budget")]
    assert (found[2].limit, found[2].mode, found[2].window.name) == (Limit(2_500_000_000, "USD"), "enforce", "total")


def test_files_without_budgets_make_none(machine: Machine) -> None:
    machine.write("", "")
    assert machine.load().budgets == ()


def test_a_budget_of_the_same_name_takes_nothing_from_the_administrators(machine: Machine) -> None:
    weaker = 'name = "a"\nwindow = "day"\nlimit = { amount = "500", currency = "USD" }\nmode = "shadow"\n'
    machine.write(ADMINS, f"[[budget]]\n{weaker}")
    admins, users = machine.load().budgets
    assert (admins.layer, admins.mode, admins.limit.amount) == ("admin", "enforce", 5_000_000_000)
    assert (users.layer, users.mode, users.limit.amount) == ("user", "shadow", 500_000_000_000)


def test_another_file_takes_nothing_from_the_administrators(machine: Machine, tmp_path: Path) -> None:
    machine.write(ADMINS, "")
    (tmp_path / "other.toml").write_text("")
    assert [each.name for each in machine.load({"config": str(tmp_path / "other.toml")}).budgets] == ["a"]


@pytest.mark.parametrize(
    ("options", "environ"),
    [
        ({"ledger": "sqlite:////tmp/mine.db"}, {}),
        ({"user": "bob", "team": "free"}, {}),
        ({}, {"ACP_PROXY_IDENTITY__TEAM": "free", "ACP_PROXY_LEDGER__URL": "sqlite:////tmp/mine.db"}),
        ({}, {"ACP_PROXY_PRICES__m__INPUT": "0"}),
        ({}, {"ACP_PROXY_ALIASES__DEFAULT": "cheap"}),
    ],
)
def test_flags_and_environment_change_nothing_that_the_administrator_set(
    machine: Machine, options: dict[str, str], environ: dict[str, str]
) -> None:
    machine.write(ADMINS, "")
    config = machine.load(options, environ)
    assert (config.identity.user, config.identity.team) == ("alice", "core")
    assert config.ledger.url == "sqlite:////srv/ledger.db"
    assert config.pricing.prices["m"].input == "5"
    assert config.aliases["default"] == "m"
    assert [each.name for each in config.budgets] == ["a"]
    assert config.overruled


def test_the_users_own_file_changes_nothing_that_the_administrator_set_either(machine: Machine) -> None:
    machine.write(ADMINS, '[identity]\nteam = "free"\n[prices.m]\ninput = "0"\n[aliases]\ndefault = "cheap"\n')
    config = machine.load()
    assert (config.identity.team, config.pricing.prices["m"].input, config.aliases) == ("core", "5", {"default": "m"})


def test_what_the_administrators_budgets_do_without_a_ledger_is_not_the_users_to_say(machine: Machine) -> None:
    machine.write(f"[[budget]]\n{NEEDED}", f'[ledger]\non_unavailable = "open"\n[[budget]]\n{NEEDED}')
    admins, users = machine.load().budgets
    assert (admins.on_unavailable, users.on_unavailable) == ("local", None)
    machine.write(f'[ledger]\non_unavailable = "closed"\n[[budget]]\n{NEEDED}', "")
    assert machine.load({}, {"ACP_PROXY_LEDGER__ON_UNAVAILABLE": "open"}).budgets[0].on_unavailable == "closed"


@pytest.mark.parametrize(("admins", "users", "limit"), [("5", "100", 5), ("5", "2", 2), (None, "7", 7), ("3", None, 3)])
def test_of_two_limits_for_one_run_the_lower_one_counts(
    machine: Machine, admins: str | None, users: str | None, limit: int
) -> None:
    machine.write(f'[run]\nbudget = "{admins}"\n' if admins else "", "")
    (budget,) = machine.load({"budget": users} if users else {}).budgets
    assert budget.limit == Limit(limit * 10**9, "USD")


def test_the_style_of_refusals_is_a_message_unless_said(machine: Machine) -> None:
    machine.write("", "")
    assert machine.load().refusal == Refusing("message", "form", 120.0)
    assert machine.load({}, {"ACP_PROXY_REFUSAL__STYLE": "error"}).refusal.style == "error"


def test_a_refused_user_is_asked_by_a_form_unless_said(machine: Machine) -> None:
    machine.write('[refusal]\nask = "never"\n', '[refusal]\nask = "choice"\nask_timeout = "500ms"\n')
    assert machine.load().refusal == Refusing("message", "never", 0.5)


def test_the_example_for_teams_is_valid() -> None:
    config = load({}, {"HOME": "/nonexistent"}, admin_file=Path(__file__).parents[2] / "deploy" / "config.toml")
    assert [(budget.name, budget.layer) for budget in config.budgets] == [
        ("developer-daily", "admin"),
        ("team-monthly", "admin"),
    ]
    assert config.identity.team == "core"
    assert config.ledger.url.startswith("postgresql://")


@given(st.from_regex(r"([0-9]{1,6}|(?=\.[0-9]))(\.[0-9]{0,12})?", fullmatch=True))
def test_an_amount_is_its_decimal_to_the_nano_unit(text: str) -> None:
    assert amount(text) == Money.of(text, "USD").nano


ON_A_PLAN = '[[budget]]\nname = "a"\nlimit = { plan = "five_hour", percent = 80 }\n'


def test_a_budget_on_a_plan_has_no_window_of_its_own(tmp_path: Path) -> None:
    assert all_of(tmp_path, ON_A_PLAN) == (PlanBudget("a", "user", "five_hour", 80),)
    every = f'{ON_A_PLAN}scope = {{ agent = "claude*" }}\nmode = "warn"\non_overage = "deny"\n'
    assert all_of(tmp_path, every) == (
        PlanBudget("a", "user", "five_hour", 80, Scope(agent=("claude*",)), "warn", "deny"),
    )


def test_budgets_on_plans_are_by_themselves_and_their_names_are_not(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    other = NEEDED.replace('"a"', '"b"')
    file.write_text(f"[[budget]]\n{other}\n{ON_A_PLAN}")
    config = load({"config": str(file)}, {"HOME": str(tmp_path)}, admin_file=file)
    assert [(each.name, each.layer) for each in config.budgets] == [("b", "admin"), ("b", "user")]
    assert [(each.name, each.layer) for each in config.plan_budgets] == [("a", "admin"), ("a", "user")]
    with pytest.raises(ConfigError, match='"a" is the name of another budget of this file'):
        all_of(tmp_path, f"[[budget]]\n{NEEDED}\n{ON_A_PLAN}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ON_A_PLAN.replace("80", "0"), "3: budget.limit.percent: expected a percent from 1 to 100"),
        (ON_A_PLAN.replace("80", "101"), "3: budget.limit.percent: expected a percent from 1 to 100"),
        (ON_A_PLAN.replace("80", '"80"'), "3: budget.limit.percent: expected a whole percent such as 80, not text"),
        (ON_A_PLAN.replace(", percent = 80", ""), f"3: budget.limit: {_LIMIT}"),
        (ON_A_PLAN.replace('plan = "five_hour", ', ""), f"3: budget.limit: {_LIMIT}"),
        (ON_A_PLAN.replace("percent = 80", "percent = 80, turns = 5"), f"3: budget.limit: {_LIMIT}"),
        (
            f'{ON_A_PLAN}window = "day"\n',
            "4: budget.window: expected none: a limit of a plan has scope, mode and on_overage beside it",
        ),
        (
            f'[[budget]]\n{NEEDED}on_overage = "deny"\n',
            '5: budget.on_overage: expected a limit of a plan beside it, such as { plan = "five_hour", percent = 80 }',
        ),
    ],
)
def test_a_budget_on_a_plan_that_is_wrong_gets_one_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        all_of(tmp_path, text)
    assert str(caught.value) == f"{tmp_path}/config.toml:{expected}"


def test_a_budget_of_money_leaves_plans_out_unless_it_says_so(tmp_path: Path) -> None:
    (usual,) = budgets(tmp_path, f"[[budget]]\n{NEEDED}")
    (other,) = budgets(tmp_path, f"[[budget]]\n{NEEDED}count_plans = true\n")
    (tokens,) = budgets(tmp_path, '[[budget]]\nname = "a"\nwindow = "day"\nlimit = { tokens = 5 }\n')
    assert [each.scope.without_plans for each in (usual, other, tokens)] == [True, False, False]
    with pytest.raises(ConfigError, match=r"5: budget.count_plans: expected none: a limit of tokens counts plans, too"):
        budgets(tmp_path, '[[budget]]\nname = "a"\nwindow = "day"\nlimit = { tokens = 5 }\ncount_plans = true\n')
