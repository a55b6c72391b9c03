"""The layers of the configuration, and the one line that each mistake gets."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

import pytest

from acp_proxy.config import AgentCounts, Config, ConfigError, Price, load, load_to_answer
from acp_proxy.config.files import line_of

EVERYTHING = """\
share_titles = true
[identity]
user = "alice"
team = "core"
organisation = "acme"
project = "shop"
[run]
agent = "my-agent"
summary = false
estimate = false
[log]
file = "~/acp.log"
level = "debug"
[ledger]
url = "sqlite:///~/ledger.db"
on_unavailable = "closed"
admission_timeout = "2s"
[pricing]
cache_write = "1h"
[prices."my-gateway/big-model"]
input = "1.20"
output = "6"
cached_read = "0.12"
cached_write = "1.5"
cached_write_1h = "2.4"
context = 200_000
[aliases]
default = "anthropic/claude-opus-5-5"
[agents."my-agent"]
scope = "session"
input = "includes_cache"
"""

A_PRICE = 'expected US dollars per million tokens as a decimal in quotes, such as "1.20"'


class Machine:
    """A user's home directory and an administrator's file; `load` reads them as a command does."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.user_file = self.home / ".config/acp-proxy/config.toml"
        self.admin_file = root / "etc/config.toml"
        self.home.mkdir()

    def user(self, text: str) -> Path:
        return _write(self.user_file, text)

    def admin(self, text: str) -> Path:
        return _write(self.admin_file, text)

    def load(self, options: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> Config:
        environment = {"HOME": str(self.home), "USER": "login", **(environ or {})}
        return load(options or {}, environment, admin_file=self.admin_file)

    def error(self, options: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(options, environ)
        text = str(caught.value)
        assert "\n" not in text
        return text.replace(str(self.user_file), "FILE").replace(str(self.admin_file), "ADMIN")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_any_file_everything_has_a_default(machine: Machine) -> None:
    config = machine.load()
    assert (config.identity.user, config.identity.team, config.identity.project) == ("login", None, None)
    assert config.identity.organisation == "default"
    assert (config.run.agent, config.run.summary, config.run.estimate) == (None, True, True)
    assert (config.log.file, config.log.level) == (None, "warning")
    assert config.ledger.url == f"sqlite:///{machine.home}/.local/state/acp-proxy/ledger.db"
    assert (config.ledger.on_unavailable, config.ledger.admission_timeout) == ("local", 0.25)
    assert (config.pricing.cache_write, config.pricing.prices, config.aliases, config.agents) == ("5m", {}, {}, {})
    assert not config.share_titles
    assert (config.files, config.overruled) == ((), ())


def test_every_key_arrives_where_it_is_read(machine: Machine) -> None:
    path = machine.user(EVERYTHING)
    config = machine.load()
    assert config.files == (path,)
    identity = config.identity
    assert (identity.user, identity.team, identity.organisation, identity.project) == ("alice", "core", "acme", "shop")
    assert (config.run.agent, config.run.summary, config.run.estimate) == ("my-agent", False, False)
    assert (config.log.file, config.log.level) == (machine.home / "acp.log", "debug")
    assert config.ledger.url == f"sqlite:///{machine.home}/ledger.db"
    assert (config.ledger.on_unavailable, config.ledger.admission_timeout) == ("closed", 2.0)
    assert config.pricing.cache_write == "1h"
    assert config.pricing.prices == {"my-gateway/big-model": Price("1.20", "6", "0.12", "1.5", "2.4", 200_000)}
    assert config.aliases == {"default": "anthropic/claude-opus-5-5"}
    assert config.agents == {"my-agent": AgentCounts("session", "includes_cache")}
    assert config.share_titles


def test_flags_win_over_the_environment_and_that_over_the_users_file(machine: Machine) -> None:
    machine.user('[identity]\nuser = "file"\nteam = "file"\nproject = "file"\n')
    environ = {"ACP_PROXY_IDENTITY__TEAM": "environment", "ACP_PROXY_IDENTITY__PROJECT": "environment"}
    identity = machine.load({"project": "flag"}, environ).identity
    assert (identity.user, identity.team, identity.project) == ("file", "environment", "flag")


def test_what_the_administrator_set_is_final_and_the_rest_is_free(machine: Machine) -> None:
    machine.admin('[identity]\nteam = "core"\n[ledger]\nurl = "sqlite:////srv/ledger.db"\n')
    machine.user('[identity]\nteam = "mine"\nuser = "me"\n')
    config = machine.load({"team": "other", "ledger": "sqlite:////tmp/x.db"}, {"ACP_PROXY_IDENTITY__TEAM": "third"})
    assert (config.identity.team, config.identity.user) == ("core", "me")
    assert config.ledger.url == "sqlite:////srv/ledger.db"
    assert config.overruled == ("identity.team", "ledger.url")


def test_a_command_does_not_answer_from_another_ledger_than_the_one_it_names(machine: Machine) -> None:
    machine.admin('[ledger]\nurl = "sqlite:////srv/ledger.db"\n')
    environ = {"HOME": str(machine.home), "USER": "login", "ACP_PROXY_LEDGER__URL": "sqlite:////tmp/x.db"}
    for options in ({}, {"ledger": "sqlite:////srv/ledger.db"}):
        config = load_to_answer(options, environ, admin_file=machine.admin_file)
        assert config.ledger.url == "sqlite:////srv/ledger.db"
    with pytest.raises(ConfigError, match=r"^--ledger: ledger\.url stands in .*, and what stands there is final$"):
        load_to_answer({"ledger": "sqlite:////tmp/x.db"}, environ, admin_file=machine.admin_file)


def test_an_administrators_price_is_final_as_a_whole(machine: Machine) -> None:
    machine.admin('[prices.m]\ninput = "5"\noutput = "25"\n')
    machine.user('[prices.m]\ncached_read = "0"\n[prices.other]\ninput = "1"\n')
    config = machine.load()
    assert config.pricing.prices == {"m": Price("5", "25"), "other": Price("1")}
    assert config.overruled == ("prices.m.cached_read",)


def test_config_names_a_file_in_place_of_the_users_and_the_administrators_still_applies(machine: Machine) -> None:
    machine.user('[identity]\nuser = "not read"\nteam = "not read"\n')
    machine.admin('[identity]\norganisation = "acme"\n')
    other = _write(machine.home / "other.toml", '[identity]\nuser = "other"\n')
    config = machine.load({"config": "~/other.toml"})
    assert (config.identity.user, config.identity.team, config.identity.organisation) == ("other", None, "acme")
    assert config.files == (other, machine.admin_file)


def test_a_tilde_before_a_name_is_that_users_home_and_else_a_name_like_others(machine: Machine) -> None:
    me = pwd.getpwuid(os.getuid())
    config = machine.load({"log": f"~{me.pw_name}/acp.log", "ledger": "sqlite:///~nobody-is-called-so/l.db"})
    assert config.log.file == Path(me.pw_dir) / "acp.log"
    assert config.ledger.url == f"sqlite:///{Path.cwd()}/~nobody-is-called-so/l.db"


def test_the_directories_of_xdg_are_followed_when_they_are_absolute(machine: Machine, tmp_path: Path) -> None:
    _write(tmp_path / "xdg/acp-proxy/config.toml", "share_titles = true\n")
    config = machine.load({}, {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "XDG_STATE_HOME": str(tmp_path / "state")})
    assert config.share_titles
    assert config.ledger.url == f"sqlite:///{tmp_path}/state/acp-proxy/ledger.db"
    assert not machine.load({}, {"XDG_CONFIG_HOME": "xdg"}).share_titles


def test_a_ledgers_path_becomes_absolute_from_home_and_from_the_working_directory(machine: Machine) -> None:
    assert machine.load({"ledger": "sqlite:///~/a/l.db"}).ledger.url == f"sqlite:///{machine.home}/a/l.db"
    assert machine.load({"ledger": "sqlite:///l.db"}).ledger.url == f"sqlite:///{Path.cwd()}/l.db"


def test_paths_and_urls_may_be_longer_than_names(machine: Machine) -> None:
    deep = f"/srv/{'d' * 250}/{'e' * 250}"
    config = machine.load({"ledger": f"sqlite:///{deep}/l.db", "log": f"{deep}/log"})
    assert (config.ledger.url, str(config.log.file)) == (f"sqlite:///{deep}/l.db", f"{deep}/log")
    assert machine.error({"log": "x" * 5000}) == "--log: expected 1 to 4096 printable characters"


def test_no_summary_and_the_log_flags_set_their_keys(machine: Machine) -> None:
    config = machine.load({"no_summary": "true", "log": "~/l", "log_level": "INFO", "agent": "a"})
    assert (config.run.summary, config.run.agent) == (False, "a")
    assert (config.log.file, config.log.level) == (machine.home / "l", "info")


@pytest.mark.parametrize(
    ("text", "summary"), [("false", False), ("0", False), ("No", False), ("TRUE", True), ("on", True)]
)
def test_truth_in_the_environment_may_be_spelled_as_people_do(machine: Machine, text: str, summary: bool) -> None:
    machine.user(f"[run]\nsummary = {str(not summary).lower()}\n")
    assert machine.load({}, {"ACP_PROXY_RUN__SUMMARY": text}).run.summary is summary


def test_an_empty_variable_is_not_set_and_others_are_not_ours(machine: Machine) -> None:
    config = machine.load({}, {"ACP_PROXY_IDENTITY__TEAM": "", "ACP_PROX": "x", "ACP": "y"})
    assert config.identity.team is None


def test_a_list_in_the_environment_has_commas(machine: Machine) -> None:
    served = machine.load(environ={"ACP_PROXY_SERVE__ALLOWED_HOSTS": "serve, costs.example.com"}).serve
    assert served.allowed_hosts == ("serve", "costs.example.com")


def test_tables_with_names_of_the_user_can_be_set_in_the_environment(machine: Machine) -> None:
    config = machine.load(
        {}, {"ACP_PROXY_ALIASES__DEFAULT": "openai/gpt", "ACP_PROXY_PRICES__my-model__CONTEXT": "1000"}
    )
    assert config.aliases == {"default": "openai/gpt"}
    assert config.pricing.prices == {"my-model": Price(context=1000)}


@pytest.mark.parametrize("variable", ["LOGNAME", "USER", "LNAME", "USERNAME"])
def test_the_user_is_the_login_name(tmp_path: Path, variable: str) -> None:
    assert load({}, {"HOME": str(tmp_path), variable: "carol"}, admin_file=tmp_path / "no").identity.user == "carol"


def test_a_login_name_that_is_no_text_is_one_that_a_ledger_can_keep(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "USER": os.fsdecode(b"ren\xe9")}
    assert load({}, environ, admin_file=tmp_path / "no").identity.user == "ren?"


def test_a_user_without_any_variable_is_still_named(tmp_path: Path) -> None:
    assert load({}, {"HOME": str(tmp_path)}, admin_file=tmp_path / "no").identity.user


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[ledger]\nurll = "x"\n', "FILE:2: ledger.urll: unknown key; did you mean ledger.url?"),
        ('team = "core"\n', "FILE:1: team: unknown key; did you mean identity.team?"),
        ("[idenity]\n", "FILE:1: idenity: unknown key; did you mean identity?"),
        ("[run]\nfoo = 1\n", "FILE:2: run.foo: unknown key; [run] has agent, summary, estimate and budget"),
        (
            '[agents."a b"]\nscop = "turn"\n',
            'FILE:2: agents."a b".scop: unknown key; did you mean agents."a b".scope?',
        ),
        ('[run]\n\nsummary = "no"\n', "FILE:3: run.summary: expected true or false, not text"),
        ("[identity]\nuser = 3\n", "FILE:2: identity.user: expected text in quotes, not a number"),
        ('[identity]\nuser = " "\n', "FILE:2: identity.user: expected 1 to 200 printable characters"),
        ('[identity]\nuser = "a\\u001b[31m"\n', "FILE:2: identity.user: expected 1 to 200 printable characters"),
        ('ledger = "x"\n', "FILE:1: ledger: expected a table, [ledger]"),
        ('[[identity]]\nuser = "a"\n', "FILE:1: identity: expected a table, [identity]"),
        (
            '[log]\nlevel = "warn"\n',
            'FILE:2: log.level: expected debug, info, warning or error; did you mean "warning"?',
        ),
        ("[log]\nlevel = 2026-01-01\n", "FILE:2: log.level: expected debug, info, warning or error"),
        ('log.level = "loud"\n', "FILE:1: log.level: expected debug, info, warning or error"),
        (
            "[ledger]\nadmission_timeout = 250\n",
            'FILE:2: ledger.admission_timeout: expected a duration such as "250ms" or "2s"',
        ),
        (
            '[ledger]\nadmission_timeout = "0s"\n',
            'FILE:2: ledger.admission_timeout: expected a duration such as "250ms" or "2s"',
        ),
        (
            '[ledger]\nadmission_timeout = "2sm"\n',
            'FILE:2: ledger.admission_timeout: expected a duration such as "250ms" or "2s"',
        ),
        (
            f'[ledger]\nadmission_timeout = "{"9" * 400}s"\n',
            'FILE:2: ledger.admission_timeout: expected a duration such as "250ms" or "2s"',
        ),
        ('[ledger]\nurl = "/tmp/x"\n', "FILE:2: ledger.url: expected sqlite:///PATH or postgresql://HOST/DATABASE"),
        ('[ledger]\nurl = "sqlite:///"\n', "FILE:2: ledger.url: expected sqlite:///PATH or postgresql://HOST/DATABASE"),
        (
            '[ledger]\nurl = "postgresql://me:a/b@db.example/ledger"\n',
            "FILE:2: ledger.url: expected postgresql://HOST/DATABASE, not a URL that cannot be read: a port is a "
            "number; in a password /, ? and # are %2F, %3F and %23",
        ),
        (
            '[prices."a/b.c"]\ninput = 1.2\n',
            'FILE:2: prices."a/b.c".input: expected a decimal in quotes, such as "1.20": write "1.2"',
        ),
        (
            '[prices]\nx = { input = "1", output = "-1" }\n',
            f"FILE:2: prices.x.output: {A_PRICE}",
        ),
        (
            '[prices.x]\ninput = "1e3"\n',
            f"FILE:2: prices.x.input: {A_PRICE}",
        ),
        (
            "[prices.x]\ncontext = 0\n",
            "FILE:2: prices.x.context: expected a number of tokens above 0",
        ),
        (
            f"[prices.x]\ncontext = {10**30}\n",
            "FILE:2: prices.x.context: expected a number of tokens up to 1,000,000,000,000",
        ),
        ("[ledger\n", "FILE:1: not valid TOML: expected ']' at the end of a table declaration"),
        ("[run]\nsummary = \n", "FILE:2: not valid TOML: invalid value"),
        ("[run]\n[run]\n", "FILE:2: not valid TOML: cannot declare run twice"),
        ('[refusal]\nstyle = "errors"\n', 'FILE:2: refusal.style: expected message or error; did you mean "error"?'),
        (
            "[run]\nbudget = 5\n",
            'FILE:2: run.budget: expected an amount as a decimal in quotes, such as "30": write "5"',
        ),
        (
            '\n[[notify]]\nurl = "x"\n',
            "FILE:3: notify.url: expected the URL of a webhook, https://HOST/…",
        ),
    ],
)
def test_a_mistake_in_a_file_gets_one_line_with_file_line_key_and_what_was_expected(
    machine: Machine, text: str, expected: str
) -> None:
    machine.user(text)
    assert machine.error() == expected


def test_an_administrators_file_of_which_nobody_can_tell_whether_it_is_there_is_a_mistake(tmp_path: Path) -> None:
    """As one in a directory that the user may not enter, which is no obstacle to root."""
    with pytest.raises(ConfigError, match=r"(?i)file name too long"):
        load({}, {"HOME": str(tmp_path)}, admin_file=tmp_path / ("x" * 300) / "config.toml")


def test_a_mistake_in_the_administrators_file_names_that_file(machine: Machine) -> None:
    machine.admin("[run]\nsummary = 1\n")
    assert machine.error() == "ADMIN:2: run.summary: expected true or false, not a number"


@pytest.mark.parametrize(
    ("options", "environ", "expected"),
    [
        ({"log_level": "warn"}, {}, '--log-level: expected debug, info, warning or error; did you mean "warning"?'),
        ({"team": ""}, {}, "--team: expected 1 to 200 printable characters"),
        ({"port": "9" * 5000}, {}, "--port: expected a port from 0 to 65535, such as 9464"),
        ({"ledger": "mysql://u:secret@h/d"}, {}, "--ledger: expected sqlite:///PATH or postgresql://HOST/DATABASE"),
        (
            {"ledger": "postgresql://u:secret@h"},
            {},
            "--ledger: expected postgresql://HOST/DATABASE",
        ),
        (
            {"budget": "-5"},
            {},
            '--budget: expected an amount from 0, such as "30" or "0.50"',
        ),
        (
            {},
            {"ACP_PROXY_BUDGET__NAME": "x"},
            "ACP_PROXY_BUDGET__NAME: budgets stand in a file, [[budget]]; only ACP_PROXY_RUN__BUDGET is a variable",
        ),
        (
            {},
            {"ACP_PROXY_BUDGET": "5"},
            "ACP_PROXY_BUDGET: budgets stand in a file, [[budget]]; only ACP_PROXY_RUN__BUDGET is a variable",
        ),
        (
            {},
            {"ACP_PROXY_NOTIFY__URL": "https://example.com/secret"},
            "ACP_PROXY_NOTIFY__URL: channels stand in a file, [[notify]], whose url_file may name another",
        ),
        (
            {},
            {"ACP_PROXY_LEDGER__URI": "x"},
            "ACP_PROXY_LEDGER__URI: unknown key; did you mean ACP_PROXY_LEDGER__URL?",
        ),
        ({}, {"ACP_PROXY_LEDGER_URL": "x"}, "ACP_PROXY_LEDGER_URL: unknown key; did you mean ACP_PROXY_LEDGER__URL?"),
        ({}, {"ACP_PROXY_TEAM": "x"}, "ACP_PROXY_TEAM: unknown key; did you mean ACP_PROXY_IDENTITY__TEAM?"),
        (
            {},
            {"ACP_PROXY_LEDGER__URL__X": "x"},
            "ACP_PROXY_LEDGER__URL__X: unknown key; did you mean ACP_PROXY_LEDGER__URL?",
        ),
        ({}, {"ACP_PROXY_ALIASES__A__B": "x"}, "ACP_PROXY_ALIASES__A__B: unknown key"),
        (
            {},
            {"ACP_PROXY_PRICES__X__INPT": "1"},
            "ACP_PROXY_PRICES__X__INPT: unknown key; did you mean prices.x.input?",
        ),
        ({}, {"ACP_PROXY_RUN__SUMMARY": "maybe"}, "ACP_PROXY_RUN__SUMMARY: expected true or false, not text"),
        ({}, {"ACP_PROXY_LEDGER": "x"}, "ACP_PROXY_LEDGER: unknown key; did you mean ACP_PROXY_LEDGER__URL?"),
    ],
)
def test_a_mistake_elsewhere_names_the_flag_or_the_variable(
    machine: Machine, options: dict[str, str], environ: dict[str, str], expected: str
) -> None:
    assert machine.error(options, environ) == expected


def test_whatever_a_variable_is_called_it_gets_one_line(machine: Machine) -> None:
    known = machine.error({}, {"ACP_PROXY_XYZZY__A__B": "1"})
    assert known.startswith("ACP_PROXY_XYZZY__A__B: unknown key; known are identity, run,")


def test_a_file_that_was_named_must_be_there_and_readable(machine: Machine, tmp_path: Path) -> None:
    assert (
        machine.error({"config": str(tmp_path / "no.toml")})
        == f"{tmp_path}/no.toml: cannot be read: no such file or directory"
    )
    assert machine.error({"config": str(tmp_path)}) == f"{tmp_path}: cannot be read: is a directory"


def test_a_file_in_another_encoding_is_refused_and_a_byte_order_mark_is_not(machine: Machine) -> None:
    machine.user("").write_bytes("[identity]\nuser = 'é'\n".encode("latin-1"))
    assert machine.error() == "FILE: expected UTF-8 text"
    machine.user("").write_bytes(b"\xef\xbb\xbfshare_titles = true\r\n")
    assert machine.load().share_titles


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("a", "b"), 2),
        (("a", "sub", "x"), 4),
        (("a", "sub", "missing"), 3),
        (("d.o.t", "deep", "key"), 7),
        (("d.o.t", "deep", "key", "inner"), 7),
        (("nowhere",), None),
    ],
)
def test_a_keys_line_is_found_or_that_of_the_table_around_it(key: tuple[str, ...], line: int | None) -> None:
    text = '[a]\nb = "x = y"\n[a.sub]  # c\nx = 1\n\n[ "d.o.t" ]\n"deep".key = { inner = 1 }\n'
    assert line_of(text, key) == line
