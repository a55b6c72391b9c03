"""The name of the project that a directory belongs to, read off its git repository without running git.

Blocks on the file system: it runs off the relay's path. Never raises; never returns a path, a credential, or what is no
text, as names of files may be.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

_LARGEST = 1 << 20  # bytes of a .git/config that are read
_LONGEST = 200  # characters of a name, as in a configuration: no database indexes text of any length


def project_of(cwd: Path) -> str:
    """The last part of origin's URL, else the name of the git root, else that of `cwd`; of a long one the beginning."""
    with suppress(OSError):  # the working directory of a relative one was removed
        cwd = cwd.absolute()
    return _found(cwd)[:_LONGEST]


def _found(cwd: Path) -> str:
    for directory in (cwd, *cwd.parents):
        git = directory / ".git"
        if _is_repository(git):
            return origin_name(_read(_common_directory(git) / "config")) or _name(directory)
    return _name(cwd)


def _name(directory: Path) -> str:
    return directory.name.encode("utf-8", "replace").decode() or "/"


def origin_name(git_config: str) -> str | None:
    """The last part of `url` in `[remote "origin"]`, without `.git`; None when there is none."""
    in_origin = False
    for line in git_config.splitlines():
        statement = line.strip()
        if header := re.match(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]', statement):
            in_origin = header[1].lower() == "remote" and header[2] == "origin"
            statement = statement[header.end() :].strip()
        if in_origin and (setting := re.match(r'url\s*=\s*"?([^"#;]*)', statement, re.IGNORECASE)):
            return _last_part(setting[1].strip())
    return None


def _last_part(url: str) -> str | None:
    """Only of the path: what stands before it may be `user:token@host`."""
    if "://" in url:
        url = url.partition("://")[2].partition("/")[2]
    elif ":" in url.partition("/")[0]:  # host:path, as scp writes it
        url = url.partition(":")[2]
    url = re.split(r"[?#]", url, maxsplit=1)[0]
    return url.rstrip("/").removesuffix(".git").rstrip("/").rpartition("/")[2] or None


def _common_directory(git: Path) -> Path:
    """In a worktree or a submodule, `.git` is a file with the path of the repository."""
    pointer = _read(git)
    if not pointer.startswith("gitdir:"):
        return git
    directory = git.parent / pointer.removeprefix("gitdir:").strip()
    common = _read(directory / "commondir").strip()  # only a worktree has it
    return directory / common if common else directory


def _is_repository(git: Path) -> bool:
    """Also a broken one; but programs leave empty directories of this name, and for Git these are none either."""
    try:
        return git.is_file() or any(git.iterdir())
    except OSError:
        return False


def _read(path: Path) -> str:
    """The text of a small file, empty when it cannot be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
