"""`python -m bench.mutants MODULE... -- TEST...`: which mutants of these modules live on when these tests have run.

The tests run once, to see which of them come by which line, and how long each takes. Then each mutant has a process of
its own, in which only these tests run, the fastest first, until one fails or the time is over.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from bench.mutants.changes import Mutant, mutants
from bench.mutants.patching import patch

_ROOT = Path(__file__).parents[2]
_TOGETHER = 2  # processes
_LIVES, _DIES = 0, 1
_FAST = 4  # seconds that a test may take while its lines are traced
_PATIENCE = 20  # seconds, and three times what the tests take


class Trial:
    """A plugin of pytest, which runs the tests in its own way."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = {str(path): path for path in paths}
        self._by_line: dict[tuple[str, int], set[int]] = defaultdict(set)
        self._seconds: list[float] = []
        self.failed = False
        self.survivors: list[str] = []
        self.killed = self.skipped = 0

    def pytest_collection(self) -> None:
        """Examples that are the same each time, and found ones that are not made small."""
        from hypothesis import Phase, settings

        settings.load_profile("house")
        settings.register_profile("mutants", phases=[Phase.generate], database=None, derandomize=True)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for path in self._paths.values():  # what runs as a module is imported, no test has reached
            importlib.import_module(_module(path))
        for number, item in enumerate(session.items):
            began = time.monotonic()
            sys.settrace(self._tracer(number))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            sys.settrace(None)
            self._seconds.append(time.monotonic() - began)
        if self.failed:
            pytest.exit("tests fail without a mutant", 2)
        running: dict[int, str] = {}
        for name, pid in self._started(session):
            running[pid] = name
            while len(running) >= _TOGETHER:
                self._wait(running)
        while running:
            self._wait(running)
        return True

    def _tracer(self, number: int) -> Any:
        lines, paths = self._by_line, self._paths

        def local(frame: FrameType, event: str, _: object) -> Any:
            if event == "line":
                lines[frame.f_code.co_filename, frame.f_lineno].add(number)
            return local

        def calls(frame: FrameType, _event: str, _: object) -> Any:
            return local if frame.f_code.co_filename in paths else None

        return calls

    def _started(self, session: pytest.Session) -> Iterator[tuple[str, int]]:
        for path in self._paths.values():
            module = importlib.import_module(_module(path))
            for mutant in mutants(path.read_text(encoding="utf-8")):
                name = f"{path.relative_to(_ROOT)}:{mutant.line}: {mutant.what}"
                if (pid := os.fork()) == 0:
                    self._try(session, module, mutant)
                yield name, pid

    def _try(self, session: pytest.Session, module: Any, mutant: Mutant) -> None:
        """In a process of its own, which ends here."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        if not patch(module, mutant):
            os._exit(3)
        reached = self._by_line.get((str(module.__file__), mutant.line))
        fast = {number for number, took in enumerate(self._seconds) if took < _FAST}
        chosen = sorted(fast & reached if reached else fast, key=self._seconds.__getitem__)
        signal.alarm(int(_PATIENCE + 3 * sum(self._seconds[number] for number in chosen)))
        for number in chosen:
            item = session.items[number]
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            except BaseException:
                os._exit(_DIES)
            if self.failed:
                os._exit(_DIES)
        os._exit(_LIVES)

    def _wait(self, running: dict[int, str]) -> None:
        pid, status = os.wait()
        name = running.pop(pid)
        match os.waitstatus_to_exitcode(status):
            case 0:
                self.survivors.append(name)
                sys.stderr.write(f"lives: {name}\n")
            case 3:
                self.skipped += 1
            case _:
                self.killed += 1


def _module(path: Path) -> str:
    return ".".join(path.relative_to(_ROOT).with_suffix("").parts).removesuffix(".__init__")


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("modules", nargs="+", type=Path, help="files or directories of acp_proxy")
    parser.add_argument("--tests", nargs="+", required=True, help="what covers them, for pytest")
    options = parser.parse_args()
    paths = [
        each.resolve() for path in options.modules for each in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
    ]
    trial = Trial(paths)
    status = pytest.main(["-q", "-p", "no:sugar", "-p", "no:cacheprovider", *options.tests], [trial])
    tried = trial.killed + len(trial.survivors)
    if not tried:
        return int(status) or 1
    sys.stdout.write("\n".join(sorted(trial.survivors)) + "\n")
    sys.stdout.write(
        f"killed {trial.killed} of {tried} mutants ({trial.killed / tried:.1%}); {trial.skipped} were not tried\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
