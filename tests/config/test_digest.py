"""Digests of configuration files: equal for files that judge budgets alike, different for those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_proxy.config import load
from acp_proxy.config.digest import FORM, NOTHING, digest

FILE = """
[identity]
team = "core"
[ledger]
url = "postgresql://alice:secret@db.example/ledger"
on_unavailable = "closed"
[[budget]]
name = "daily"
window = "day"
scope = { team = ["core", "web"] }
limit = { amount = "30", currency = "USD" }
[[budget]]
name = "tokens"
window = "session"
limit = { tokens = 2_000_000 }
[prices.big]
input = "1.20"
[aliases]
default = "anthropic/claude-opus-5-5"
[agents.mine]
scope = "turn"
"""
SAME = """
# The same in another order, with other spellings, defaults in full and what does not concern budgets.
share_titles = true
agents.mine.scope = "turn"
aliases.default = "anthropic/claude-opus-5-5"
prices.big.input = "1.2"
identity.team = "web"
[log]
level = "debug"
[refusal]
style = "error"
[ledger]
on_unavailable = "closed"
url = "postgres://bob:hunter2@DB.example:5432/ledger?sslmode=require"
[[budget]]
name = "tokens"
window = "session"
limit = { tokens = 2000000 }
mode = "enforce"
timezone = "UTC"
[[budget]]
name = "daily"
window = "day"
limit = { currency = "USD", amount = "30.0" }
thresholds = [100, 90, 80, 50]
scope = { team = ["web", "core"] }
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def digests(root: Path, admin: str | None = None, user: str | None = None, **options: str) -> tuple[str, str]:
    """The administrator's and the user's."""
    admin_file, user_file = root / "admin.toml", root / ".config/acp-proxy/config.toml"
    user_file.parent.mkdir(parents=True, exist_ok=True)
    for path, text in ((admin_file, admin), (user_file, user)):
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
    config = load(options, {"HOME": str(root), "USER": "alice"}, admin_file=admin_file)
    return digest(config, "admin"), digest(config, "user")


def test_a_file_has_one_digest_as_long_as_its_form_is_the_same(root: Path) -> None:
    """Machines with other versions compare theirs: where this changes, FORM has to."""
    with_window = FILE.replace('input = "1.20"', 'input = "1.20"\ncontext = 200_000')
    assert FORM == 1
    assert digests(root, with_window)[0] == "0205e01aecaa4856e2b34e753c69aec4"


def test_how_a_ledgers_file_is_written_is_in_no_digest(root: Path) -> None:
    url = '[ledger]\nurl = "sqlite:////srv/ledger.db{}"\n'
    assert digests(root, url.format("")) == digests(root, url.format("?synchronous=full"))


def test_files_that_mean_the_same_have_the_same_digest(root: Path) -> None:
    assert digests(root, FILE, FILE) == digests(root, SAME, SAME)


@pytest.mark.parametrize(
    ("what", "by"),
    [
        ('amount = "30"', 'amount = "31"'),
        ('currency = "USD"', 'currency = "EUR"'),
        ("tokens = 2_000_000", "turns = 2_000_000"),
        ('window = "day"', 'window = "week"'),
        ('"core", "web"', '"core"'),
        ('name = "daily"', 'name = "dayly"'),
        ('name = "daily"', 'name = "daily"\nmode = "shadow"'),
        ('name = "daily"', 'name = "daily"\nper = "user"'),
        ('name = "daily"', 'name = "daily"\non_unavailable = "open"'),
        ('on_unavailable = "closed"', 'on_unavailable = "open"'),
        ('on_unavailable = "closed"', 'on_unavailable = "closed"\nadmission_timeout = "2s"'),
        ("db.example/ledger", "db.example/other"),
        ('team = "core"', 'user = "alice"'),
        ('"1.20"', '"1.21"'),
        ("opus-5-5", "opus-5"),
        ('scope = "turn"', 'scope = "session"'),
        ("[aliases]", '[pricing]\ncache_write = "1h"\n[aliases]'),
        ("[aliases]", '[run]\nbudget = "5"\n[aliases]'),
    ],
)
def test_files_that_judge_otherwise_have_another(root: Path, what: str, by: str) -> None:
    changed = FILE.replace(what, by, 1)
    assert changed != FILE
    before, after = digests(root, FILE, FILE), digests(root, changed, changed)
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_the_day_on_which_weeks_begin_is_in_a_digest_where_it_is_not_monday(root: Path) -> None:
    weekly = FILE.replace('window = "day"', 'window = "week"')
    from_monday, from_sunday = (
        weekly.replace('"week"', f'"week"\nweek_start = "{day}"') for day in ("monday", "sunday")
    )
    assert digests(root, weekly) == digests(root, from_monday) != digests(root, from_sunday)


def test_each_files_digest_is_of_that_file_alone(root: Path) -> None:
    assert digests(root, FILE, None)[1] == digests(root)[1] == NOTHING
    assert digests(root, None, FILE)[0] == NOTHING
    assert digests(root, FILE, "share_titles = true")[0] == digests(root, FILE, FILE)[0]


def test_flags_change_the_digest_of_no_file(root: Path) -> None:
    assert digests(root, FILE, FILE, budget="5", team="web") == digests(root, FILE, FILE)


def test_a_file_that_says_nothing_of_budgets_is_as_good_as_none(root: Path) -> None:
    assert digests(root, '[log]\nlevel = "debug"', "") == (NOTHING, NOTHING)
