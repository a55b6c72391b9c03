"""Channels as a file writes them, the one line that each mistake gets, and that no URL is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_proxy.config import load
from acp_proxy.config.channels import Channel, Secret, channels_of
from acp_proxy.config.files import ConfigError, read
from acp_proxy.core.notice import KINDS

URL = "https://hooks.example.com/T0/B0/verysecret"
ONE = f'[[notify]]\nurl = "{URL}"\n'


def channels(path: Path, text: str) -> tuple[Channel, ...]:
    file = path / "config.toml"
    file.write_text(text, encoding="utf-8")
    return channels_of(read(file), "user", {"HOME": "/home/alice"})


def mistake(path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        channels(path, text)
    assert "verysecret" not in str(caught.value)
    return str(caught.value).replace(str(path / "config.toml"), "FILE")


def test_a_url_is_enough(tmp_path: Path) -> None:
    (channel,) = channels(tmp_path, ONE)
    assert channel == Channel("json", "user", Secret(URL))
    assert (channel.kinds, channel.budgets, channel.secret) == (KINDS, (), None)


def test_every_key_arrives_where_it_is_read(tmp_path: Path) -> None:
    text = """
[[notify]]
name = "leads"
url_file = "~/webhook"
format = "Slack"
on = ["refusal", "threshold", "refusal"]
budgets = "team-*"
[[notify]]
url = "http://localhost:8080/x"
on = "ledger"
budgets = ["a", "b"]
secret = "whsec_c2VjcmV0"
[[notify]]
name = "third"
url = "http://[::1]/"
secret_file = "/run/secrets/notify"
"""
    assert channels(tmp_path, text) == (
        Channel(
            "leads", "user", Secret(file=Path("/home/alice/webhook")), "slack", ("threshold", "refusal"), ("team-*",)
        ),
        Channel(
            "json",
            "user",
            Secret("http://localhost:8080/x"),
            "json",
            ("ledger",),
            ("a", "b"),
            Secret("whsec_c2VjcmV0"),
        ),
        Channel("third", "user", Secret("http://[::1]/"), secret=Secret(file=Path("/run/secrets/notify"))),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[notify]\n", "FILE:1: notify: expected tables, [[notify]]"),
        ("[[notify]]\n", "FILE:1: notify.url: expected the URL of a webhook, or url_file"),
        ('[[notify]]\nurl = "verysecret"\n', "FILE:2: notify.url: expected the URL of a webhook, https://HOST/…"),
        (
            '[[notify]]\nurl = "ftp://h/verysecret"\n',
            "FILE:2: notify.url: expected the URL of a webhook, https://HOST/…",
        ),
        (
            '[[notify]]\nurl = "https://h:99999/verysecret"\n',
            "FILE:2: notify.url: expected the URL of a webhook, https://HOST/…",
        ),
        (
            '[[notify]]\nurl = "https://h/\\nverysecret"\n',
            "FILE:2: notify.url: expected the URL of a webhook, https://HOST/…",
        ),
        (
            '[[notify]]\nurl = "http://127.0.0.1.example.com/verysecret"\n',
            "FILE:2: notify.url: expected the URL of a webhook, https://HOST/…; http only to this machine",
        ),
        ("[[notify]]\nurl = 1\n", "FILE:2: notify.url: expected the URL of a webhook, https://HOST/…"),
        (f'{ONE}url_file = "x"\n', "FILE:3: notify.url_file: expected url or url_file, not both"),
        (f'{ONE}urll = "x"\n', "FILE:3: notify.urll: unknown key; did you mean notify.url?"),
        (
            f'{ONE}format = "slak"\n',
            'FILE:3: notify.format: expected json, slack, teams or discord; did you mean "slack"?',
        ),
        (
            f'{ONE}on = ["thresholds"]\n',
            "FILE:3: notify.on: expected threshold, refusal, stop, unpriced, ledger, plan or request; "
            'did you mean "threshold"?',
        ),
        (
            f"{ONE}on = []\n",
            "FILE:3: notify.on: expected some of threshold, refusal, stop, unpriced, ledger, plan and request, "
            "not an empty list",
        ),
        (f'{ONE}secret = ""\n', "FILE:3: notify.secret: expected 1 to 200 printable characters"),
        (f'{ONE}secret = "whsec_verysecret!"\n', "FILE:3: notify.secret: expected base64 after whsec_"),
        (
            f'{ONE}secret = "verysecret"\nsecret_file = "x"\n',
            "FILE:4: notify.secret_file: expected secret or secret_file, not both",
        ),
        (
            f'{ONE}format = "slack"\nsecret = "verysecret"\n',
            'FILE:4: notify.secret: only format = "json" is signed; slack takes no signature',
        ),
        (
            f"{ONE}{ONE}",
            'FILE:3: notify.name: "json" is the name of another channel of this file; give each a name',
        ),
        (
            f'{ONE}name = "a"\n{ONE}name = "a"\n',
            'FILE:6: notify.name: "a" is the name of another channel of this file',
        ),
    ],
)
def test_a_mistake_gets_one_line_that_shows_no_secret(tmp_path: Path, text: str, expected: str) -> None:
    assert mistake(tmp_path, text) == expected


def test_channels_of_both_files_add_up_whatever_their_names(tmp_path: Path) -> None:
    admin, user = tmp_path / "admin.toml", tmp_path / "user.toml"
    admin.write_text(ONE)
    user.write_text('[[notify]]\nurl = "http://127.0.0.1/"\n')
    found = load({"config": str(user)}, {"HOME": str(tmp_path)}, admin_file=admin).channels
    assert [(channel.layer, channel.name, channel.url.text) for channel in found] == [
        ("admin", "json", URL),
        ("user", "json", "http://127.0.0.1/"),
    ]


def test_a_channel_of_the_administrators_needs_no_file_of_the_users(tmp_path: Path) -> None:
    admin = tmp_path / "admin.toml"
    admin.write_text(ONE)
    assert load({}, {"HOME": str(tmp_path)}, admin_file=admin).channels == (Channel("json", "admin", Secret(URL)),)


def test_no_url_and_no_secret_is_in_what_a_configuration_looks_like(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'{ONE}secret = "alsosecret"\n')
    config = load({"config": str(file)}, {"HOME": str(tmp_path)}, admin_file=tmp_path / "none")
    assert config.channels
    assert "verysecret" not in repr(config)
    assert "alsosecret" not in repr(config)
