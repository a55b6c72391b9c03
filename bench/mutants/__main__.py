"""`python -m bench.mutants [ROOM]`: which small changes of a room's code live on when the tests of that room have run.

`--code FILE... --tests TEST...` for what is no room. What is no fault stands with its reason in `equivalent.toml`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from bench.mutants.rooms import ROOMS, Room
from bench.mutants.trial import ROOT, Key, Trial

_MOST = 400


def _equivalent() -> dict[Key, str]:
    """Changes that are no faults, and why."""
    told = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text(encoding="utf-8"))
    return {
        (each["file"], each["in"], change): each["because"] for each in told["equivalent"] for change in each["changes"]
    }


def _files(names: tuple[str, ...] | list[str]) -> list[Path]:
    paths = [ROOT / name for name in names]
    return [each for path in paths for each in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]


def _told(path: Path) -> set[Key]:
    """The mutants that an earlier run has said to live."""
    lines = [line.split(":", 3) for line in path.read_text(encoding="utf-8").splitlines() if line.count(":") > 2]
    return {(file, scope.strip(), what[1:]) for file, _, scope, what in lines}


def _trial(room: Room, most: int, seconds: float, only: set[Key] | None) -> tuple[int, Trial]:
    without = set(_files(room.without))
    paths = [path for path in _files(room.code) if path not in without]
    if only is not None:
        paths = [path for path in paths if any(file == str(path.relative_to(ROOT)) for file, _, _ in only)]
    trial = Trial(paths, _equivalent(), most, seconds, only)
    with tempfile.TemporaryDirectory(prefix="mutants") as place:
        options = ["-q", "--tb=no", "--assert=plain", "-p", "no:sugar", "-p", "no:cacheprovider", "-p", "no:xdist"]
        status = pytest.main([*options, f"--basetemp={place}/tests", *room.options, *room.tests], [trial])
    return int(status), trial


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("room", nargs="?", choices=[room.name for room in ROOMS])
    parser.add_argument("--code", nargs="+", default=[], help="files or directories of acp_proxy")
    parser.add_argument("--tests", nargs="+", default=[], help="what covers them, for pytest")
    parser.add_argument("--most", type=int, default=_MOST, help=f"of more mutants so many are drawn ({_MOST})")
    parser.add_argument("--seconds", type=float, default=8, help="what the tests of one mutant may take, traced (8)")
    parser.add_argument("--again", type=Path, help="a file with what an earlier run has printed: only what lived then")
    options = parser.parse_args()
    rooms = [room for room in ROOMS if room.name == options.room]
    room = rooms[0] if rooms else Room("these files", (), ())
    if options.code or options.tests:
        room = Room(room.name, tuple(options.code) or room.code, tuple(options.tests) or room.tests, (), room.options)
    if not room.code or not room.tests:
        parser.error(f"name a room ({', '.join(each.name for each in ROOMS)}), or --code and --tests")
    status, trial = _trial(room, options.most, options.seconds, None if options.again is None else _told(options.again))
    tried = trial.killed + len(trial.survivors)
    if not tried:
        return status or 1
    sys.stdout.write("".join(f"{each}\n" for each in sorted(trial.survivors)))
    drawn = f" of {trial.of}" if trial.of > options.most else ""
    sys.stdout.write(
        f"{room.name}: {trial.killed} killed of {tried} mutants{drawn} ({trial.killed / tried:.1%}), "
        f"{len(trial.equivalent)} equivalent, {trial.untried} not tried\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
