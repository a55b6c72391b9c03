"""Where results are kept: tables between marks of a page in docs/, pictures beside it, and every figure as JSON."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.peer import proc

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "pictures"
MEASURED = DOCS / "measured"


def put(page: str, mark: str, lines: Sequence[str]) -> None:
    """Replace what is between `<!-- mark: begin -->` and `<!-- mark: end -->`, which must be there."""
    path, begin, end = DOCS / page, f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{path}: expected the marks {begin} and {end}")
    text = "\n".join([begin, *lines, end])
    path.write_text(f"{before}{text}{rest.partition(end)[2]}", encoding="utf-8")


def put_json(path: Path, value: Any) -> None:
    """Whole or not at all: a measurement that is broken off leaves the last one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    unfinished.rename(path)


def put_picture(name: str, svg: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / name).write_text(svg, encoding="utf-8")


def machine() -> str:
    """What was measured on, for people. Several generations may have one name, hence the numbers and the caches."""
    told = dict(_fields(proc("/proc/cpuinfo").split("\n\n")[0]))
    processor = told.get("model name", platform.machine())
    numbers = [f"{name} {told[field]}" for name, field in _NUMBERS if field in told]
    details = ", ".join([*numbers, *_caches()])
    made_of = f"{processor} ({details})" if details else processor
    return f"{os.cpu_count()} × {made_of}, Linux {platform.release()}, CPython {platform.python_version()}"


_NUMBERS = (("family", "cpu family"), ("model", "model"))


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()


def _caches() -> Iterator[str]:
    for each in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, size = (proc(each / name).strip() for name in ("level", "size"))
        if level != "1" and size.endswith("K"):
            yield f"L{level} {int(size[:-1]) / 1024:g} MB"


def today() -> str:
    return time.strftime("%Y-%m-%d")
