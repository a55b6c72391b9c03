"""Imports `msgspec`, `pathlib` and `argparse` without what those import for functions that are not called here: 15 ms
less of 60.

Only for a process of our own. A caller of one of those functions gets it, imported at that moment.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Later:
    """Stands in for a module until a name of it is used. `functions` may be looked up, and import it when called."""

    def __init__(self, name: str, *functions: str) -> None:
        self._name = name
        self.__dict__.update({function: _calling(name, function) for function in functions})

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import system looks for what a module need not have
            raise AttributeError(name)
        return _imported(self._name, name)


class _Unknown:
    """Stands in for a module whose classes are only there for `isinstance`: no object will be of one."""

    def __init__(self, *classes: str) -> None:
        self.__dict__.update({name: type(name, (), {"unknown": None}) for name in classes})  # SafeUUID.unknown


def import_leanly(*, only_to_look: bool = False) -> None:
    """Once, before anything imports `msgspec` or `pathlib`.

    With `only_to_look` msgspec knows neither `UUID` nor `Decimal`: no row and no setting has one.
    """
    _import_datetime()
    platform = _Later("platform")
    platform.__dict__["system"] = lambda: os.uname().sysname  # uuid asks at once
    stand_ins: dict[str, object] = {
        "typing_extensions": None,  # msgspec takes it where it is installed, for what Python 3.11 has itself
        "platform": platform,
        "fnmatch": _Later("fnmatch"),
        "ntpath": _Later("ntpath"),  # pathlib: paths of Windows
        "warnings": _Later("warnings"),
        "urllib.parse": _Later("urllib.parse", "quote_from_bytes"),  # pathlib: URLs of files
        "msgspec._json_schema": _Later("msgspec._json_schema", "schema", "schema_components"),
        **{name: _Later(name) for name in ("msgspec.inspect", "msgspec.toml", "msgspec.yaml")},
    }
    if sys.version_info[:2] == (3, 12):
        del stand_ins["fnmatch"]  # whose pathlib calls it at once
    if only_to_look:
        stand_ins |= {"uuid": _Unknown("UUID", "SafeUUID"), "decimal": _Unknown("Decimal")}
    new = {name: stand_in for name, stand_in in stand_ins.items() if name not in sys.modules}
    sys.modules.update(new)  # type: ignore[arg-type]  # no modules, and good enough for now
    try:
        import pathlib  # noqa: F401  for the modules that import it next

        import msgspec  # noqa: F401  the same
    except (ImportError, AttributeError):  # another version asks more of a module than its stand-in gives
        for name in [name for name in sys.modules if name.partition(".")[0] == "msgspec"]:
            del sys.modules[name]
    finally:
        for name in new:
            sys.modules.pop(name, None)


def import_argparse() -> None:
    """It would look for translations of its words, for each of a hundred parsers anew, and there are none."""
    if "argparse" in sys.modules or "gettext" in sys.modules:
        return
    gettext = _Later("gettext")
    gettext.__dict__.update(gettext=lambda text: text, ngettext=lambda one, many, number: one if number == 1 else many)
    sys.modules["gettext"] = gettext  # type: ignore[assignment]
    try:
        import argparse  # noqa: F401
    finally:
        del sys.modules["gettext"]


def _import_datetime() -> None:
    """Python 3.11 defines `datetime` in Python, to replace all of it by what is written in C: that is taken at once."""
    if sys.version_info < (3, 12) and "datetime" not in sys.modules:
        import _datetime  # type: ignore[import-not-found, unused-ignore]  # it has no types

        sys.modules["datetime"] = _datetime


def _calling(module: str, function: str) -> Callable[..., object]:
    return lambda *values, **named: _imported(module, function)(*values, **named)


def _imported(module: str, name: str) -> Any:
    from importlib import import_module

    if isinstance(sys.modules.get(module), _Later):
        raise AttributeError(f"{module}.{name}")
    return getattr(import_module(module), name)
