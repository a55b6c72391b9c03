"""Where channels post to: URLs and secrets from files, and one line without either when they cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_proxy.config import ConfigError
from acp_proxy.config.channels import Channel, Secret
from acp_proxy.notify.destinations import destination

URL = "https://hooks.example.com/verysecret"


def test_a_url_and_a_secret_may_stand_in_files(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"{URL}\n")
    (tmp_path / "secret").write_text("\n shared \n")
    given = Channel("a", "user", Secret(file=tmp_path / "url"), secret=Secret(file=tmp_path / "secret"))
    found = destination(given, "default")
    assert (found.url, found.secret, found.host) == (URL, "shared", "hooks.example.com")
    assert "secret" not in repr(found).replace("secret=", "")
    assert found.wanted == destination(Channel("a", "user", Secret(URL)), "default").wanted


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "no such file or directory"),
        (b"", "expected the URL of a webhook, https://HOST/…"),
        (b"\xff", "expected UTF-8 text"),
        (
            b"http://hooks.example.com/verysecret",
            "expected the URL of a webhook, https://HOST/…; http only to this machine",
        ),
        (b"https://h/verysecret\nhttps://h/2", "expected the URL of a webhook, https://HOST/…"),
        (b"https://h/verysecret" * 1000, "expected the URL of a webhook, https://HOST/…"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, content: bytes | None, expected: str) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        destination(Channel("leads", "user", Secret(file=file)), "default")
    assert str(caught.value) == f'notify "leads": url_file {file}: {expected}'


def test_a_channel_is_told_from_others_of_its_name_by_where_it_posts(tmp_path: Path) -> None:
    keys = {
        destination(Channel("a", layer, Secret(url), form), "default").wanted.channel
        for layer in ("admin", "user")
        for url in (URL, f"{URL}2")
        for form in ("json", "slack")
    }
    assert len(keys) == 8
    assert not any("verysecret" in key for key in keys)
