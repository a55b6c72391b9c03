"""`python -m grafana.build [--check]`: writes the dashboards, or tells which are not as the code is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.build.budgets import budgets
from grafana.build.chargeback import chargeback
from grafana.build.fleet import fleet
from grafana.build.health import health
from grafana.build.names import UIDS
from grafana.build.page import dashboard
from grafana.build.sessions import sessions

DIRECTORY = Path(__file__).parent.parent / "dashboards"


def main(arguments: list[str]) -> str | None:
    """What to complain about, or None."""
    match arguments:
        case []:
            write()
            return None
        case ["--check"]:
            return check()
    return "usage: python -m grafana.build [--check]"


def texts() -> dict[str, str]:
    """Each dashboard's JSON by the name of its file."""
    pages = (fleet(), chargeback(), sessions(), budgets(), health())
    return {f"{UIDS[page.title]}.json": _text(dashboard(page)) for page in pages}


def _text(made: object) -> str:
    return json.dumps(made, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write() -> None:
    DIRECTORY.mkdir(exist_ok=True)
    for old in DIRECTORY.glob("*.json"):
        old.unlink()
    for name, text in texts().items():
        (DIRECTORY / name).write_text(text, encoding="utf-8")


def check() -> str | None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in DIRECTORY.glob("*.json")}
    made = texts()
    other = sorted(name for name in committed.keys() | made.keys() if committed.get(name) != made.get(name))
    return f"not as the code makes them: {', '.join(other)}; run scripts/build-dashboards" if other else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
