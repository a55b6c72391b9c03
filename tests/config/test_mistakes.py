"""The one line that each mistake in a configuration gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_proxy.config import ConfigError, load
from acp_proxy.config.files import line_of
from tests.config.machine import Machine

A_PRICE = 'expected US dollars per million tokens as a decimal in quotes, such as "1.20"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[ledger]\nurll = "x"\n', "FILE:2: ledger.urll: unknown key; did you mean ledger.url?"),
        ('team = "core"\n', "FILE:1: team: unknown key; did you mean identity.team?"),
        ("[idenity]\n", "FILE:1: idenity: unknown key; did you mean identity?"),
        ('\n[price."a.b"]\ninput = "1"\n', "FILE:2: price: unknown key; did you mean prices?"),
        (
            '[prices.x]\ncurrency = "EUR"\n',
            "FILE:2: prices.x.currency: unknown key; [prices.x] has input, output, cached_read, cached_write, "
            "cached_write_1h and context",
        ),
        (
            '[prices."claude-opus-5.5"]\ninput = "1"\n[prices."Claude-Opus-5-5"]\ninput = "2"\n',
            "FILE:3: prices.Claude-Opus-5-5: expected each model once; "
            'prices."claude-opus-5.5" is the same, and says something else',
        ),
        (
            '[aliases]\nopus = "claude-opus-5-5"\nOpus = "claude-opus-5"\n',
            "FILE:3: aliases.Opus: expected each model once; aliases.opus is the same, and says something else",
        ),
        ("[run]\nfoo = 1\n", "FILE:2: run.foo: unknown key; [run] has agent, summary, estimate and budget"),
        (
            '[agents."a b"]\nscop = "turn"\n',
            'FILE:2: agents."a b".scop: unknown key; did you mean agents."a b".scope?',
        ),
        (
            '[agents."\\"名\\\\\\u001b"]\nscop = "turn"\n',
            r'FILE:2: agents."\"名\\\u001b".scop: unknown key; did you mean agents."\"名\\\u001b".scope?',
        ),
        (
            '[prices.gpt-5.1]\ninput = "1"\n',
            'FILE:1: prices.gpt-5.1: expected quotes around a name with a dot, as in prices."gpt-5.1"',
        ),
        (
            '[prices.glm-5.2.1]\ninput = "1"\noutput = "2"\n',
            'FILE:1: prices.glm-5.2.1: expected quotes around a name with a dot, as in prices."glm-5.2.1"',
        ),
        (
            '[agents.my.agent]\nscope = "turn"\n',
            'FILE:1: agents.my.agent: expected quotes around a name with a dot, as in agents."my.agent"',
        ),
        (
            '[aliases]\ngpt-5.1 = "gpt-6"\n',
            'FILE:2: aliases.gpt-5.1: expected quotes around a name with a dot, as in aliases."gpt-5.1"',
        ),
        ('[prices.x]\ninput = { usd = "1" }\n', f"FILE:2: prices.x.input: {A_PRICE}"),
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
        (
            '[ledger]\nurl = "me:secret@db/x"\n',
            "FILE:2: ledger.url: expected a path, sqlite:///PATH, postgresql://HOST/DATABASE or https://HUB",
        ),
        (
            '[ledger]\nurl = "sqlite:///"\n',
            "FILE:2: ledger.url: expected a path, sqlite:///PATH, postgresql://HOST/DATABASE or https://HUB",
        ),
        (
            '[ledger]\nurl = "postgresql://me:a/b@db.example/ledger"\n',
            "FILE:2: ledger.url: expected postgresql://HOST/DATABASE, not a URL that cannot be read: a port is a "
            "number; in a password /, ? and # are %2F, %3F and %23",
        ),
        (
            '[prices."a/b.c"]\ninput = 1.2\n',
            'FILE:2: prices."a/b.c".input: expected a decimal in quotes, such as "1.20": write "1.2"',
        ),
        ("[prices.x]\ninput = -1\n", 'FILE:2: prices.x.input: expected a decimal in quotes, such as "1.20"'),
        ("[prices.x]\ninput = 1e-7\n", 'FILE:2: prices.x.input: expected a decimal in quotes, such as "1.20"'),
        ("[prices.x]\ninput = inf\n", 'FILE:2: prices.x.input: expected a decimal in quotes, such as "1.20"'),
        (
            '[prices]\nx = { input = "1", output = "-1" }\n',
            f"FILE:2: prices.x.output: {A_PRICE}",
        ),
        (
            'share_titles = true\nprices."a=b".input = "x=y"\n',
            f'FILE:2: prices."a=b".input: {A_PRICE}',
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
        ('[refusal]\nask = "always"\n', "FILE:2: refusal.ask: expected form, choice or never"),
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
        (
            {"ledger": "mysql://u:secret@h/d"},
            {},
            "--ledger: expected a path, sqlite:///PATH, postgresql://HOST/DATABASE or https://HUB",
        ),
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
            "ACP_PROXY_BUDGET__NAME: budgets are set in a file, [[budget]]; only ACP_PROXY_RUN__BUDGET is a variable",
        ),
        (
            {},
            {"ACP_PROXY_BUDGET": "5"},
            "ACP_PROXY_BUDGET: budgets are set in a file, [[budget]]; only ACP_PROXY_RUN__BUDGET is a variable",
        ),
        (
            {},
            {"ACP_PROXY_NOTIFY__URL": "https://example.com/secret"},
            "ACP_PROXY_NOTIFY__URL: channels are set in a file, as [[notify]]; its url_file may name another",
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


def test_two_spellings_of_one_model_may_say_the_same(machine: Machine) -> None:
    machine.user('[prices]\n"gpt-5.5" = { input = "1" }\n"GPT-5.5" = { input = "1" }\n"gpt-5" = { input = "2" }\n')
    assert len(machine.load().pricing.prices) == 3


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
