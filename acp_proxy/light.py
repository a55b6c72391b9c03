"""Imports `msgspec` and `pathlib` without what they take along for functions that nobody here calls: 8 ms of 60.

Only for a process that is ours. Who calls one of those functions all the same gets it: imported then.
"""

from __future__ import annotations

import os
import sys


class _Later:
    """Stands in for a module. What is `known` of it is asked for while others are imported, all else later or never."""

    def __init__(self, name: str, **known: object) -> None:
        self.__dict__.update(known)
        self._name = name

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import system looks for what a module need not have
            raise AttributeError(name)
        from importlib import import_module

        return getattr(import_module(self._name), name)


def import_lightly() -> None:
    """Once, before anything imports `msgspec` or `pathlib`."""
    stand_ins = {
        "typing_extensions": None,  # msgspec takes it where it is installed, for what Python 3.11 has itself
        "textwrap": _Later("textwrap"),  # msgspec: JSON schemas
        "platform": _Later("platform", system=_system),  # uuid, and that msgspec
        "urllib.parse": _Later("urllib.parse", quote_from_bytes=_quoted),  # pathlib: URLs of files
    }
    new = {name: stand_in for name, stand_in in stand_ins.items() if name not in sys.modules}
    sys.modules.update(new)  # type: ignore[arg-type]
    try:
        import pathlib  # noqa: F401

        import msgspec  # noqa: F401
    finally:
        for name in new:
            del sys.modules[name]


def _system() -> str:
    return os.uname().sysname


def _quoted(text: bytes) -> str:
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(text)
