"""The layers of the configuration: which wins over which, and what each may say."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from acp_proxy.config import AgentCounts, ConfigError, Price, load, load_to_answer
from tests.config.machine import Machine, write

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
titles = false
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


def test_without_any_file_everything_has_a_default(machine: Machine) -> None:
    config = machine.load()
    assert (config.identity.user, config.identity.team, config.identity.project) == ("login", None, None)
    assert config.identity.organisation == "default"
    assert (config.run.agent, config.run.summary, config.run.estimate) == (None, True, True)
    assert (config.log.file, config.log.level) == (None, "warning")
    assert config.ledger.url == f"sqlite:///{machine.home}/.local/state/acp-proxy/ledger.db"
    assert (config.ledger.on_unavailable, config.ledger.admission_timeout, config.ledger.titles) == (
        "local",
        0.25,
        True,
    )
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
    assert (config.ledger.on_unavailable, config.ledger.admission_timeout, config.ledger.titles) == (
        "closed",
        2.0,
        False,
    )
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
    with pytest.raises(ConfigError, match=r"^--ledger: .* sets ledger\.url, which cannot be overridden$"):
        load_to_answer({"ledger": "sqlite:////tmp/x.db"}, environ, admin_file=machine.admin_file)


def test_how_a_ledgers_file_is_written_is_no_part_of_its_path(machine: Machine) -> None:
    (machine.home / "kept.db").touch()
    (machine.home / "ledger.db").symlink_to("kept.db")
    machine.user('[ledger]\nurl = "sqlite:///~/ledger.db?synchronous=full"\n')
    assert machine.load().ledger.url == f"sqlite:///{machine.home}/kept.db?synchronous=full"


def test_an_administrators_price_is_final_as_a_whole(machine: Machine) -> None:
    machine.admin('[prices.m]\ninput = "5"\noutput = "25"\n')
    machine.user('[prices.m]\ncached_read = "0"\n[prices.other]\ninput = "1"\n')
    config = machine.load()
    assert config.pricing.prices == {"m": Price("5", "25"), "other": Price("1")}
    assert config.overruled == ("prices.m.cached_read",)


def test_config_names_a_file_in_place_of_the_users_and_the_administrators_still_applies(machine: Machine) -> None:
    machine.user('[identity]\nuser = "not read"\nteam = "not read"\n')
    machine.admin('[identity]\norganisation = "acme"\n')
    other = write(machine.home / "other.toml", '[identity]\nuser = "other"\n')
    config = machine.load({"config": "~/other.toml"})
    assert (config.identity.user, config.identity.team, config.identity.organisation) == ("other", None, "acme")
    assert config.files == (other, machine.admin_file)


def test_a_tilde_before_a_name_is_that_users_home_and_else_a_name_like_others(machine: Machine) -> None:
    me = pwd.getpwuid(os.getuid())
    config = machine.load({"log": f"~{me.pw_name}/acp.log", "ledger": "sqlite:///~nobody-is-called-so/l.db"})
    assert config.log.file == Path(me.pw_dir) / "acp.log"
    assert config.ledger.url == f"sqlite:///{Path.cwd()}/~nobody-is-called-so/l.db"


@pytest.mark.parametrize("option", [{}, {"token_file": "~/token"}])
def test_a_token_file_may_be_named_from_home(machine: Machine, option: dict[str, str]) -> None:
    machine.user('[serve]\ntoken_file = "~/token"\n' if not option else "")
    assert machine.load(option).serve.token_file == machine.home / "token"


def test_the_directories_of_xdg_are_followed_when_they_are_absolute(machine: Machine, tmp_path: Path) -> None:
    write(tmp_path / "xdg/acp-proxy/config.toml", "share_titles = true\n")
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
