"""The configuration's paths, and a TOML file as a table with line numbers for errors.

Knows nothing of keys; writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from acp_proxy.system.directories import config_directory, home
from acp_proxy.system.errors import reason_of

_MARK = b"\xef\xbb\xbf"  # that some editors begin UTF-8 with


class ConfigError(Exception):
    """The configuration cannot be used. The text is one line: file and line, key, what was expected."""


class TomlFile(Struct, frozen=True):
    """A file that was read: its text, for the places of errors, and the table that the text is."""

    path: Path
    text: str
    table: dict[str, Any]

    def where(self, key: tuple[str, ...]) -> str:
        """`FILE:LINE` of a key, or of the nearest table around it."""
        line = line_of(self.text, key)
        return f"{self.path}:{line}" if line else str(self.path)

    def where_nth(self, index: int, key: tuple[str, ...]) -> str:
        """`where` for a key of the table at `index` of an array of tables; `key` begins with the array's name."""
        lines = self.text.splitlines()
        starts = [n for n, line in enumerate(lines) if line.lstrip().startswith("[[") and _path_of(line) == key[:1]]
        if index >= len(starts):  # an array in one value
            return self.where(key[:1])
        start, *following = starts[index:]
        line = line_of("\n".join(lines[start : following[0] if following else None]), key)
        return f"{self.path}:{start + (line or 1)}"


def parsed(text: str) -> dict[str, Any]:
    """The table that TOML text is. Raises ValueError and RecursionError."""
    from acp_proxy.system.lean_toml import toml  # most machines have no configuration file

    return toml().loads(text.replace("\r\n", "\n"))  # type: ignore[no-any-return]


def read(path: Path) -> TomlFile:
    """Raises ConfigError for a file that cannot be read or is not TOML."""
    try:
        text = path.read_bytes().removeprefix(_MARK).decode()
        return TomlFile(path, text, parsed(text))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: expected UTF-8 text") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(_syntax_error(path, str(error))) from error


def line_of(text: str, key: tuple[str, ...]) -> int | None:
    """The first line of TOML text that sets `key`, else the one that comes closest to it from above.

    The parser of the standard library keeps no positions. This looks at each line by itself, and is asked only once
    an error is known: a line inside of a multi-line string may fool it, which then names the wrong line, no more.
    """
    best, found = 0, None
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = _path_of(line.strip()) if line.lstrip().startswith("[") else ()
        table = header or table
        path = header or table + _key_of(line)
        common = min(len(path), len(key))  # the key may be a table that only the header of one below it names
        if best < common and path[:common] == key[:common]:
            best, found = common, number
    return found


def user_file(environ: Mapping[str, str]) -> Path:
    return config_directory(environ) / "config.toml"


def expanded(path: str, environ: Mapping[str, str]) -> Path:
    """A path as a user writes it: with `~` for the home directory, `~name` for that of a user if there is one."""
    whose, _, rest = path.partition("/")
    if whose == "~":
        return home(environ) / rest
    try:
        return Path(path).expanduser()
    except RuntimeError:  # a file may be called so
        return Path(path)


def _key_of(line: str) -> tuple[str, ...]:
    """The dotted key before the first `=` that is not inside of quotes; () when there is none."""
    position = line.find("=")
    while position >= 0:
        if path := _path_of(line[:position].strip() + " = {}"):
            return path
        position = line.find("=", position + 1)
    return ()


def _path_of(statement: str) -> tuple[str, ...]:
    """The path that one TOML statement sets, () when it is none: `[a."b.c"]` and `a."b.c" = {}` are ("a", "b.c")."""
    from acp_proxy.system.lean_toml import toml

    try:
        value: Any = toml().loads(statement)
    except (ValueError, RecursionError):
        return ()
    path: list[str] = []
    while value:
        if isinstance(value, list):  # [[array of tables]]
            value = value[0]
            continue
        key, value = next(iter(value.items()))
        path.append(key)
    return tuple(path)


def _syntax_error(path: Path, message: str) -> str:
    """tomllib ends its messages with `(at line 3, column 5)` or `(at end of document)`, and shows keys as tuples."""
    import re  # only an error pays for it

    reason, _, position = message.partition(" (at ")
    line = position.removeprefix("line ").partition(",")[0]
    reason = re.sub(r"\('(.*?)',?\)", lambda key: key[1].replace("', '", "."), reason)
    where = f"{path}:{line}" if line.isdigit() else str(path)
    return f"{where}: not valid TOML: {reason[:1].lower()}{reason[1:]}"
