"""`acp-proxy demo`: a session against a bundled agent."""

from __future__ import annotations

import argparse

from acp_proxy.cli import arguments

EXAMPLE = "demo"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)


def main(_: argparse.Namespace) -> int:
    from acp_proxy import demo

    return demo.main()
