"""Imports `asyncio`, `uvloop` and `orjson` without modules that a relay never uses: 5 of its 27 MB.

These are `ssl`, `subprocess`, `inspect`, `logging`, `dataclasses`, `textwrap` and `tokenize`. While the three are
imported, small stand-ins take the place of these modules in `sys.modules`; afterwards `import ssl` gives the real one
again. What needs TLS, processes or log records through the event loop itself has to import asyncio normally, so a
relay with interceptors of other packages does.
"""

from __future__ import annotations

import sys
from types import GeneratorType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FunctionType

_IMPORTED = ("asyncio", "uvloop", "orjson", "concurrent")
_COROUTINE = 0x80  # CO_COROUTINE in `co_flags`, as in inspect


def import_for_relay() -> None:
    """Once, before anything imports asyncio. A version that needs more of these modules is imported normally."""
    stand_ins = _stand_ins()
    new = {name: stand_in for name, stand_in in stand_ins.items() if name not in sys.modules}
    sys.modules.update(new)  # type: ignore[arg-type]  # no modules, and good enough for this import
    try:
        import asyncio  # noqa: F401  for the modules that import it next

        import orjson  # noqa: F401  the same
        import uvloop  # noqa: F401  the same
    except (ImportError, AttributeError, TypeError):
        for name in [name for name in sys.modules if name.partition(".")[0] in _IMPORTED]:
            del sys.modules[name]
    finally:
        for name in new:
            sys.modules.pop(name, None)


def _stand_ins() -> dict[str, object]:
    errors: dict[str, object] = {
        name: type(name, (OSError,), {})
        for name in ("SSLError", "SSLWantReadError", "SSLSyscallError", "SSLZeroReturnError", "CertificateError")
    }
    codes = {"SSL_ERROR_WANT_READ": 2, "SSL_ERROR_WANT_WRITE": 3, "SSL_ERROR_SYSCALL": 5}
    names = ("SSLContext", "MemoryBIO", "create_default_context")
    classes: dict[str, object] = {name: type(name, (), {}) for name in names}
    return {
        "ssl": _StandIn("ssl", **errors, **codes, **classes),
        "subprocess": _StandIn(
            "subprocess", PIPE=-1, STDOUT=-2, DEVNULL=-3, SubprocessError=type("SubprocessError", (Exception,), {})
        ),
        "inspect": _StandIn("inspect", isgenerator=_is_generator, iscoroutinefunction=_is_coroutine_function),
        "logging": _StandIn("logging", DEBUG=10, getLogger=_Logger),
        "textwrap": _StandIn("textwrap"),  # of traceback
        "tokenize": _StandIn("tokenize"),  # of linecache, which traceback imports
        "dataclasses": _StandIn("dataclasses", _FIELD=object()),  # orjson compares the kinds of fields with it
    }


class _StandIn:
    """A module whose other names are those of the real one, which is imported when one of them is used."""

    def __init__(self, name: str, **names: object) -> None:
        self._name = name
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import system looks for what a module need not have
            raise AttributeError(name)
        if isinstance(sys.modules.get(self._name), _StandIn):  # asked for while asyncio is imported
            raise AttributeError(f"{self._name}.{name}")
        from importlib import import_module

        return getattr(import_module(self._name), name)


class _Logger:
    """The logger of asyncio or concurrent.futures, made when the first record is logged."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        import logging

        return getattr(logging.getLogger(self._name), name)


def _is_generator(value: object) -> bool:
    return isinstance(value, GeneratorType)


def _is_coroutine_function(value: FunctionType) -> bool:
    """As inspect's for functions, methods and partials of them; asyncio asks it of each signal handler."""
    while (inner := getattr(value, "func", None) or getattr(value, "__func__", None)) is not None:
        value = inner
    code = getattr(value, "__code__", None)
    return code is not None and bool(code.co_flags & _COROUTINE)
