"""`acp-proxy config`: every value of the configuration, and its source."""

from __future__ import annotations

import argparse
import os
import sys

from acp_proxy.cli import arguments, options
from acp_proxy.report import formats
from acp_proxy.text.figures import aligned, clean

EXAMPLE = "config --json"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    command.add_argument("--json", action="store_true", help="for programs")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.config import origins

    found = list(origins.values(options.common(asked), os.environ))
    if asked.json:
        sys.stdout.write(
            formats.as_json_text([{"key": each.key, "value": each.value, "source": each.source} for each in found])
        )
        return 0
    rows = [(clean(each.key), clean(origins.as_text(each.value)), clean(each.source)) for each in found]
    sys.stdout.write(aligned([("key", "value", "from"), *rows], [False] * 3))
    return 0
