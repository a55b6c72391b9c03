"""hub.toml: what it may hold, and what a mistake in it reads like."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_proxy.config.files import ConfigError
from acp_proxy.hub.settings import Settings, load


def loaded(tmp_path: Path, text: str, **environ: str) -> Settings:
    path = tmp_path / "hub.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, environ)


def refused(tmp_path: Path, text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text, **environ)
    said = str(caught.value)
    assert len(said.splitlines()) == 1
    return said.removeprefix(f"{tmp_path}/hub.toml")


def test_without_a_file_the_ledger_is_in_the_state_directory(tmp_path: Path) -> None:
    found = load(None, {"XDG_STATE_HOME": str(tmp_path)})
    assert found.database.url == f"sqlite:///{tmp_path}/acp-proxy/hub/ledger.db"
    assert (found.listen.host, found.organisation) == ("127.0.0.1", "default")


def test_an_unknown_key_is_named_with_its_line(tmp_path: Path) -> None:
    assert refused(tmp_path, "[listen]\nport = 1\nprot = 2\n") == ":3: listen.prot: unknown key"
    assert refused(tmp_path, "lisen = 2\n") == ":1: lisen: unknown key"


def test_a_value_of_another_type_is_named_with_its_line(tmp_path: Path) -> None:
    assert refused(tmp_path, '[listen]\nport = "1"\n') == ":2: listen.port: expected int, got str"


def test_a_secret_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n", encoding="utf-8")
    provider = '[[provider]]\nname = "one"\nissuer = "https://id"\nclient_id = "hub"\nclient_secret = "{}"\n'
    by_name = loaded(tmp_path, provider.format("${SECRET}"), SECRET="of the environment")
    by_file = loaded(tmp_path, provider.format(f"${{file:{tmp_path}/secret}}"))
    assert by_name.provider[0].client_secret == "of the environment"
    assert by_file.provider[0].client_secret == "from a file"


def test_a_secret_in_the_file_itself_is_refused_and_not_repeated(tmp_path: Path) -> None:
    provider = '[[provider]]\nname = "one"\nissuer = "https://id"\nclient_id = "hub"\nclient_secret = "hunter2"\n'
    said = refused(tmp_path, provider)
    assert said == ":5: provider.client_secret: expected ${VARIABLE} or ${file:PATH}"


def test_a_secret_that_is_missing_is_named(tmp_path: Path) -> None:
    database = '[database]\nurl = "postgresql://hub:{}@db/acp_proxy"\n'
    assert refused(tmp_path, database.format("${PASSWORD}")) == ":2: database.url: the environment has no PASSWORD"
    assert "no such file" in refused(tmp_path, database.format("${file:/nowhere}"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('url = "hub.example.org"', ":1: url: expected https://HOST"),
        ("[listen]\nport = 70000", ":2: listen.port: expected a number up to 65535"),
        ('[listen]\ncertificate = "a"', ":1: listen: expected certificate and key, or neither"),
        ('[listen]\ntrusted = ["here"]', ":2: listen.trusted: expected addresses or networks such as 10.0.0.0/8"),
        ("[database]\nconnections = 0", ":2: database.connections: expected 1 to 64"),
        ('organisation = " "', ":1: organisation: expected a name"),
    ],
)
def test_a_value_out_of_range_says_what_was_expected(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text) == said


def test_a_wrong_database_is_one_line_without_its_password(tmp_path: Path) -> None:
    said = refused(tmp_path, '[database]\nurl = "mysql://hub:hunter2@db/x"\n')
    assert "unknown scheme 'mysql'" in said
    assert "hunter2" not in said


def test_the_documented_file_is_read(tmp_path: Path) -> None:
    documented = (Path(__file__).parents[2] / "docs" / "hub.md").read_text(encoding="utf-8")
    text = documented.partition("## hub.toml\n```toml\n")[2].partition("```")[0]
    assert loaded(tmp_path, text, DATABASE_PASSWORD="x").url == "https://hub.example.org"
