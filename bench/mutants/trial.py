"""The trial of mutants as a plugin of pytest, which runs the tests in its own way.

They run once, to see which of them come by which line, and how long each takes. Then each mutant has a process of its
own, forked from this one, in which only these tests run until one fails or the time is over: first those that have
found most mutants in its neighbourhood for the time that they take.
"""

from __future__ import annotations

import ast
import gc
import importlib
import mmap
import os
import random
import resource
import signal
import struct
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import pytest

from bench.mutants.changes import Mutant, mutants
from bench.mutants.patching import forget, patch

ROOT = Path(__file__).parents[2]
_LIVES, _DIES, _UNTRIED = 0, 1, 3
_TOO_LONG = (-signal.SIGPROF, -signal.SIGALRM)
_PATIENCE = 2  # seconds of a processor, and three times what a test takes with its lines traced
_WAITING = 60  # seconds in which a test that waits for something comes to its end
_MEMORY = 4 << 30  # bytes of a mutant's process
_EXAMPLES = 50  # of each property

Key = tuple[str, str, str]  # file, scope, change


class Trial:
    """The mutants of `paths`, `most` of them where there are more. `seconds`: what the tests of one may take."""

    def __init__(
        self,
        paths: Iterable[Path],
        equivalent: Mapping[Key, str],
        most: int,
        seconds: float,
        only: Container[Key] | None,
    ) -> None:
        """`only`: of all mutants these; None: any."""
        self._only = only
        self._paths = {str(path): path for path in paths}
        self._known = equivalent
        self._most = most
        self._most_seconds = seconds
        self._by_line: dict[tuple[str, int], set[int]] = defaultdict(set)
        self._seconds: list[float] = []
        self._found: Counter[tuple[str, str, int]] = Counter()  # mutants, by file, scope or "" and test
        self._finder = mmap.mmap(-1, 4)  # the number of the test that has found the present mutant, told by its process
        self._running: int | None = None
        self.failed = False
        self.survivors: list[str] = []
        self.killed = self.untried = self.of = 0
        self.equivalent: set[Key] = set()

    def pytest_collection(self) -> None:
        """Examples that are the same each time, and found ones that are not made small."""
        from hypothesis import Phase, settings

        settings.load_profile("house")
        settings.register_profile(
            "mutants", phases=[Phase.explicit, Phase.generate], database=None, derandomize=True, max_examples=_EXAMPLES
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed
        if report.failed and self._running is not None:
            self._die()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """A mutant is found as soon as anything is raised: nobody reads what a report says of that."""
        error = call.excinfo
        if self._running is not None and error is not None and not error.errisinstance(pytest.skip.Exception):
            self._die()

    def _die(self) -> None:
        self._finder[:] = struct.pack("i", self._running)
        os._exit(_DIES)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        modules = {path: importlib.import_module(_module(path)) for path in self._paths.values()}
        for number, item in enumerate(session.items):
            began = time.process_time()
            tracer = self._tracer(number)
            threading.settrace(tracer)
            sys.settrace(tracer)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            sys.settrace(None)
            threading.settrace(None)
            self._seconds.append(time.process_time() - began)
        if self.failed:
            pytest.exit("tests fail without a mutant", 2)
        sys.stderr.write(f"{len(session.items)} tests take {sum(self._seconds):.0f} seconds, traced\n")
        gc.collect()
        gc.freeze()
        for path, tree, mutant in self._drawn():
            self._try(session, modules[path], path, tree, mutant)
        return True

    def _drawn(self) -> list[tuple[Path, ast.Module, Mutant]]:
        all_of_them = []
        for path in self._paths.values():
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found = [(path, tree, mutant) for mutant in mutants(tree)]
            all_of_them += [each for each in found if self._only is None or _key(path, each[2]) in self._only]
        self.of = len(all_of_them)
        if len(all_of_them) > self._most:
            chosen = sorted(random.Random(self.of).sample(range(self.of), self._most))
            return [all_of_them[number] for number in chosen]
        return all_of_them

    def _tracer(self, number: int) -> Any:
        by_line, paths, begun = self._by_line, self._paths, dict[CodeType, set[int]]()

        def calls(frame: FrameType, _event: str, _: object) -> Any:
            code = frame.f_code
            if code.co_filename not in paths:
                return None
            if (left := begun.get(code)) is None:
                left = begun[code] = {line for *_, line in code.co_lines() if line is not None}
            if not left:
                return None

            def local(frame: FrameType, event: str, _: object) -> Any:
                if event == "line":
                    left.discard(frame.f_lineno)
                    by_line[code.co_filename, frame.f_lineno].add(number)
                return local

            return local

        return calls

    def _try(self, session: pytest.Session, module: ModuleType, path: Path, tree: ast.Module, mutant: Mutant) -> None:
        key = file, _, _ = _key(path, mutant)
        if key in self._known:
            self.equivalent.add(key)
            return
        chosen = self._chosen(file, path, mutant)
        code = self._run(session, module, chosen, mutant, tree)
        if code in _TOO_LONG and self._run(session, module, chosen, mutant, None) in _TOO_LONG:
            code = _UNTRIED  # the machine is slow at present, not the mutant
        match code:
            case 0:
                self.survivors.append(f"{file}:{mutant.lines[0]}: {mutant.scope}: {mutant.what}")
                sys.stderr.write(f"lives: {self.survivors[-1]}\n")
            case 3:  # _UNTRIED
                self.untried += 1
                sys.stderr.write(f"not tried: {file}:{mutant.lines[0]}: {mutant.scope}: {mutant.what}\n")
            case _:
                self.killed += 1
                if code == _DIES:
                    (number,) = struct.unpack("i", self._finder[:])
                    self._found[file, mutant.scope, number] += 1
                    self._found[file, "", number] += 1

    def _chosen(self, file: str, path: Path, mutant: Mutant) -> list[int]:
        reached = set[int]().union(*(self._by_line.get((str(path), line), set()) for line in mutant.lines))
        near = reached
        if not mutant.scope or not mutant.scope.rpartition(".")[2][:1].islower():
            # A constant, or the default of a field: any test may notice, those first that run some line of the module.
            reached = set(range(len(self._seconds)))
            near = {number for (name, _), numbers in self._by_line.items() if name == str(path) for number in numbers}

        def worth(number: int) -> float:
            found = self._found[file, "", number] + 5 * self._found[file, mutant.scope, number]
            return (found + 0.1) * (5 if number in near else 1) / (self._seconds[number] + 0.02)

        chosen, seconds = list[int](), 0.0
        for number in sorted(reached, key=lambda each: (-worth(each), each)):
            seconds += self._seconds[number]
            if seconds > self._most_seconds and chosen:
                break
            chosen.append(number)
        return chosen

    def _run(
        self, session: pytest.Session, module: ModuleType, chosen: list[int], mutant: Mutant, tree: ast.Module | None
    ) -> int:
        """How a process ended that ran these tests with the mutant; no tree: with the code as it is."""
        if (pid := os.fork()) == 0:
            self._run_here(session, module, chosen, mutant, tree)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _run_here(
        self, session: pytest.Session, module: ModuleType, chosen: list[int], mutant: Mutant, tree: ast.Module | None
    ) -> None:
        """In a process of its own, which ends here."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        try:
            if tree is not None and not patch(module, mutant.scope, mutant.lines[0], mutant.made(tree)):
                os._exit(_UNTRIED)
        except Exception:  # what cannot even be imported
            os._exit(2)
        forget()
        for number in chosen:
            self._running = number
            signal.setitimer(signal.ITIMER_PROF, _PATIENCE + 3 * self._seconds[number])
            signal.alarm(int(_WAITING + 20 * self._seconds[number]))
            item = session.items[number]
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            except BaseException:
                self._die()
        os._exit(_LIVES)


def _key(path: Path, mutant: Mutant) -> Key:
    return str(path.relative_to(ROOT)), mutant.scope, mutant.what


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
