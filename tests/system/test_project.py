"""The project of a directory, from real files of git's layout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from acp_proxy.system.project import origin_name, project_of


def repository(root: Path, url: str | None = None) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q")
    if url:
        git(root, "remote", "add", "origin", url)
    return root


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    nobodys = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}  # may ask for signatures
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True, timeout=30, env=nobodys)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://host/team/shop.git", "shop"),
        ("https://user:secret@host/team/shop/", "shop"),
        ("https://host/team/shop.git?token=secret#x", "shop"),
        ("ssh://git@host:22/team/shop", "shop"),
        ("git@host:team/shop.git", "shop"),
        ("git@host:shop.git", "shop"),
        ("host:~/shop.git", "shop"),
        ("/srv/git/shop.git", "shop"),
        ("../shop", "shop"),
        ("file:///srv/shop.git/", "shop"),
    ],
)
def test_a_project_is_the_last_part_of_origins_url(tmp_path: Path, url: str, name: str) -> None:
    assert project_of(repository(tmp_path / "clone", url)) == name


@pytest.mark.parametrize("url", ["https://user:secret@host", "https://secret@host/", "secret@host:", "https://", ""])
def test_a_url_without_a_path_gives_nothing_away(url: str) -> None:
    assert origin_name(f'[remote "origin"]\n\turl = {url}\n') is None


def test_it_is_found_from_a_directory_below(tmp_path: Path) -> None:
    below = repository(tmp_path / "clone", "https://host/shop.git") / "src/deep"
    below.mkdir(parents=True)
    assert project_of(below) == "shop"


def test_without_an_origin_it_is_the_name_of_the_root_and_without_git_of_the_directory(tmp_path: Path) -> None:
    below = repository(tmp_path / "tool") / "src"
    below.mkdir()
    assert project_of(below) == "tool"
    plain = tmp_path / "plain"
    plain.mkdir()
    assert project_of(plain) == "plain"


def test_a_worktree_has_the_origin_of_its_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "clone", "https://host/shop.git")
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "worktree", "add", "-q", str(tmp_path / "elsewhere"))
    assert project_of(tmp_path / "elsewhere") == "shop"


def test_a_submodule_has_an_origin_of_its_own(tmp_path: Path) -> None:
    library = repository(tmp_path / "library")
    git(library, "commit", "-q", "--allow-empty", "-m", "x")
    root = repository(tmp_path / "clone", "https://host/shop.git")
    git(root, "submodule", "add", "-q", str(library), "vendored")
    assert project_of(root / "vendored") == "library"
    assert project_of(root) == "shop"


def test_other_remotes_and_other_sections_do_not_count() -> None:
    others = '[remote "upstream"]\n url = a/wrong\n[branch "origin"]\n url = b/wrong\n'
    assert origin_name(others) is None
    assert origin_name(f'{others}[Remote "origin"] ; c\n  URL = "x/right"\n') == "right"
    assert origin_name('[remote "origin"] url = x/right # c') == "right"
    assert origin_name('[remote "origin"]\n pushurl = x/wrong\n') is None


def test_a_broken_repository_still_has_a_name(tmp_path: Path) -> None:
    root = tmp_path / "broken"
    root.mkdir()
    (root / ".git").write_bytes(b"gitdir: \xff\0/nowhere")
    assert project_of(root) == "broken"
    assert project_of(Path("/")) == "/"


def test_an_empty_directory_above_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "shop").mkdir()
    assert project_of(tmp_path / "shop") == "shop"


def test_a_directory_whose_name_is_no_text_is_a_project_that_a_ledger_can_keep(tmp_path: Path) -> None:
    directory = tmp_path / os.fsdecode(b"caf\xe9")
    assert project_of(directory) == "caf?"
    assert project_of(repository(directory) / "src") == "caf?"


def test_of_a_name_that_is_too_long_for_an_index_the_beginning_is_the_project(tmp_path: Path) -> None:
    root = repository(tmp_path / "root", f"https://example.com/{'x' * 5000}.git")
    assert project_of(root) == "x" * 200


def test_a_relative_path_below_a_directory_that_was_removed_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert project_of(Path("shop")) == "shop"
