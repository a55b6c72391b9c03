"""What is tried when nothing else is asked for: rooms of the package, each with the tests that are its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_CORE = "acp_proxy/core"
_TESTS_OF_CORE = Path(__file__).parents[2] / "tests/core"


@dataclass(frozen=True, slots=True)
class Room:
    """Files and directories; `without` stand in one of these and are another room's. `options` are pytest's."""

    name: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


_ACP_TESTS = (
    *(f"tests/core/test_{each}.py" for each in ("acp", "acp_counting", "acp_questions", "characters")),
    "tests/core/conversation",
)
_METER_TESTS = ("tests/core/meter", "tests/core/test_recordings.py")

ROOMS = (
    Room("core/meter/readers", (f"{_CORE}/meter/readers",), _METER_TESTS),
    Room("core/meter", (f"{_CORE}/meter",), _METER_TESTS, without=(f"{_CORE}/meter/readers",)),
    Room("core/budget", (f"{_CORE}/budget",), ("tests/core/budget",)),
    Room(
        "ledger/accounts",
        ("acp_proxy/ledger/accounts",),
        (
            "tests/ledger/accounts",
            "tests/ledger/test_budgets.py",
            "tests/ledger/test_batches.py",
            "tests/hub/test_lending.py",
            "tests/hub/test_lease_ends.py",
        ),
        options=("-k", "not repeatable and not serializable and not pgbouncer and not [hub and not -hub]"),
    ),
    Room("core/wire", (f"{_CORE}/wire",), ("tests/core/wire",)),
    Room("core/jsonrpc", (f"{_CORE}/jsonrpc.py",), ("tests/core/test_jsonrpc.py",)),
    Room("core/conversation", (f"{_CORE}/conversation",), ("tests/core/conversation",)),
    Room(
        "core/acp",
        (f"{_CORE}/acp",),
        _ACP_TESTS,
        options=("-k", "not long_session"),  # it measures memory, and the trial takes some
    ),
    Room(
        "values of core",
        (_CORE,),
        (
            *(f"tests/core/{each.name}" for each in sorted(_TESTS_OF_CORE.glob("test_*.py"))),
            "tests/core/conversation/test_tool_times.py",
        ),
        options=("--deselect", "tests/core/test_recordings.py"),  # of the meter
        without=tuple(
            f"{_CORE}/{each}" for each in ("acp", "agents", "budget", "conversation", "jsonrpc.py", "meter", "wire")
        ),
    ),
)
