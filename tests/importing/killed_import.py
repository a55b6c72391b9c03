"""An import that is killed before or after one of its writes: `python -m tests.importing.killed_import HOME LEDGER N`.

Write N is the one that is not made; with a sign before it, the last one that is made.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from acp_proxy.config import load
from acp_proxy.importing.command import Asked, _Import
from acp_proxy.importing.shelves import SHELVES
from acp_proxy.ledger import open_ledger
from tests.importing.homes import A_YEAR, Home


def main(home: Home, last: int, *, makes_it: bool) -> None:
    environ, writes = home.environ, 0

    def killed(write: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            nonlocal writes
            writes += 1
            if writes == last and not makes_it:
                os.kill(os.getpid(), signal.SIGKILL)
            done = write(*arguments)
            if writes == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return wrapped

    config = load({"ledger": home.url}, environ)
    found = [(shelf, list(shelf.files(home.path, environ))) for shelf in SHELVES.values()]
    with closing(open_ledger(home.url, journals=[home.journals])) as ledger:
        importing = _Import(
            Asked(), config, environ, time.time_ns() + A_YEAR, ledger, killed(ledger.append), killed(ledger.correct)
        )
        importing.of_all([(shelf, paths) for shelf, paths in found if paths], lambda *_: None)


if __name__ == "__main__":
    main(Home(Path(sys.argv[1]), Path(sys.argv[2])), abs(int(sys.argv[3])), makes_it=sys.argv[3].startswith("-"))
