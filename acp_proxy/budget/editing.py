"""`acp-proxy budget add|set|remove|undo`: changes the budgets of a configuration file, and nothing else in it.

Comments, order and layout of the rest stay byte for byte. What the file would say is checked before it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from msgspec import Struct
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, InlineTable, Table

from acp_proxy.config.budgets import budgets_of
from acp_proxy.config.files import ConfigError, TomlFile, parsed
from acp_proxy.setup.originals import Original
from acp_proxy.setup.settings_file import SettingsError, SettingsFile
from acp_proxy.setup.showing import diff
from acp_proxy.system.errors import UsageError
from acp_proxy.text.figures import clean

_ALL = 100  # percent
_ORDER = ("name", "per", "scope", "window", "timezone", "limit", "mode", "on_exceed", "on_overage")


class Asked(Struct, frozen=True):
    """The arguments. `values` are TOML values by their key in a `[[budget]]`, only those of the action."""

    action: str  # add, set, remove, undo
    name: str | None = None
    values: Mapping[str, Any] = {}
    dry_run: bool = False


def edit(asked: Asked, path: Path, state: Path, admins: Sequence[str], *, colours: bool) -> str:
    """Edits the file and describes the change. `admins` are the names of budgets in the administrator's file.

    `state` is where a copy for `undo` is kept. Raises UsageError, and then the file is as it was.
    """
    file = SettingsFile(path)
    try:
        original = Original(state / "budgets", file.target)
        before = file.read()
        if asked.action == "undo":
            return _undone(file, original, before, asked, colours=colours)
        text = (before or b"").decode("utf-8")
        after = _changed(text, asked, path, admins)
        shown = diff(path, text, after, colours=colours)
        if asked.dry_run:
            return shown
        file.check()
        original.keep(before, after.encode())
        file.replace(before, after.encode())
        return f"{shown}\n{_said(asked)}"
    except UnicodeDecodeError:
        raise UsageError(f"{path}: expected UTF-8 text, nothing was done") from None
    except SettingsError as error:
        raise UsageError(str(error)) from error


def _changed(text: str, asked: Asked, path: Path, admins: Sequence[str]) -> str:
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise UsageError(f"{path}: not valid TOML: {error}, nothing was done") from error
    budgets = document.get("budget")
    if budgets is not None and not isinstance(budgets, AoT):
        raise UsageError(f"{path}: expected budgets as tables, [[budget]], nothing was done")
    if tomlkit.dumps(document) != text:
        raise UsageError(f"{path}: cannot be changed without changing its layout; edit it by hand")
    names = [str(budget.get("name")) for budget in budgets or ()]
    if asked.action == "add":
        if asked.name in names:
            raise UsageError(f'budget "{clean(asked.name or "")}" is there already; `acp-proxy budget set` changes it')
        if budgets is None:
            budgets = tomlkit.aot()
            document.append("budget", budgets)
        budgets.append(_table({"name": asked.name, **asked.values}))
    else:
        at = _index(asked.name or "", names, path, admins)
        if asked.action == "remove":
            del budgets[at]  # type: ignore[union-attr]  # a name was found in it
            return _without_block(text, at, tomlkit.dumps(document))
        _set(budgets[at], asked.values)  # type: ignore[index]
    after = tomlkit.dumps(document)
    if text and not text.endswith("\n") and after.startswith(text):  # a last line without its end
        after = f"{text}\n{after[len(text) :].lstrip()}"
    try:
        budgets_of(TomlFile(path, after, parsed(after)), "user")
    except ConfigError as error:
        raise UsageError(f"{_without_place(str(error), path)}, nothing was done") from error
    return after


def _without_block(text: str, at: int, otherwise: str) -> str:
    """The text without the lines of one `[[budget]]`. Comments behind its last key stay, which tomlkit takes along.

    `otherwise` is tomlkit's text, for a layout that lines do not show, such as `[` at the start of a line in a string.
    """
    lines = text.splitlines(keepends=True)
    headers = [n for n, line in enumerate(lines) if line.lstrip().startswith("[")]
    begins = [n for n in headers if lines[n].lstrip().replace(" ", "").startswith("[[budget]]")]
    if at >= len(begins):
        return otherwise
    others = (n for n in headers if n > begins[at] and not lines[n].lstrip().startswith("[budget."))
    end = next(others, len(lines))
    while end > begins[at] + 1 and lines[end - 1].strip()[:1] in ("", "#"):
        end -= 1
    left = "".join((*lines[: begins[at]], *lines[end:]))
    try:
        return left if {"budget": [], **parsed(left)} == parsed(otherwise) else otherwise
    except ValueError:
        return otherwise


def _index(name: str, names: Sequence[str], path: Path, admins: Sequence[str]) -> int:
    if name in names:
        return names.index(name)
    if name in admins:
        raise UsageError(f'budget "{clean(name)}" is the one of the administrator, who alone changes it')
    from difflib import get_close_matches

    close = get_close_matches(name, names, 1)
    hint = f"; did you mean {clean(close[0])}?" if close else f"; {path} has {', '.join(map(clean, names)) or 'none'}"
    raise UsageError(f'no budget "{clean(name)}"{hint}')


def _table(values: Mapping[str, Any]) -> Table:
    table = tomlkit.table()
    for key in _ORDER:
        if values.get(key) is not None:
            table.append(key, _item(_of_plan(None, values[key]) if key == "limit" else values[key]))
    return table


def _set(table: Table, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if value is None:
            continue
        table[key] = _item(_of_plan(table.get(key), value) if key == "limit" else value)


def _of_plan(before: Any, limit: Mapping[str, Any]) -> Mapping[str, Any]:
    """A limit of a plan with what was not given as it was; of another kind it is as it was given."""
    if "plan" not in limit:
        return limit
    kept = before if isinstance(before, Mapping) else {}
    plan = limit["plan"] or kept.get("plan")
    percent = limit["percent"] or kept.get("percent", _ALL)
    return {"percent": percent} if plan is None else {"plan": str(plan), "percent": int(percent)}


def _item(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    inline: InlineTable = tomlkit.inline_table()
    inline.update(value)
    return inline


def _undone(file: SettingsFile, original: Original, before: bytes | None, asked: Asked, *, colours: bool) -> str:
    there, kept = original.kept()
    if not there:
        raise UsageError("nothing to undo: `acp-proxy budget` has changed nothing since the last undo")
    if before is None or not original.made(before):
        raise UsageError(f"{file.path}: was changed by hand since, nothing was done")
    shown = diff(file.path, before.decode("utf-8"), (kept or b"").decode("utf-8"), colours=colours)
    if asked.dry_run:
        return shown
    if kept is None:
        file.remove(before)
    else:
        file.replace(before, kept)
    original.forget()
    return f"{shown}\n{file.path} is as it was.\n"


def _said(asked: Asked) -> str:
    done = {"add": "Added", "set": "Changed", "remove": "Removed"}[asked.action]
    return (
        f'{done} budget "{clean(asked.name or "")}". It holds for agents that are started from now on; '
        "`acp-proxy budget undo` takes it back.\n"
    )


def _without_place(error: str, path: Path) -> str:
    """The line number is that of a text that was not written."""
    return error.removeprefix(f"{path}:").lstrip("0123456789").removeprefix(": ")
