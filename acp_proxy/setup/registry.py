"""The commands of agents that Zed installs from the ACP registry: Zed's settings have no command for them.

Zed keeps a copy of the registry beside its data. What it does not say, `known` says.
Reads that file; opens no network connection. Sources are named in docs/editors.md.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

import msgspec
from msgspec import Struct

from acp_proxy.setup.known import KNOWN
from acp_proxy.system.decoding import json_decoder
from acp_proxy.system.directories import home, xdg

_VERSION = re.compile(
    r"(?<=.)@[^@/]*$|==.*$"
)  # at the end of a package's name: Zed moves with the registry, npx with npm
_LARGEST = 16 * 1024 * 1024  # bytes; the registry of 2026 has 60,000


class Started(Struct, frozen=True):
    """How an agent of the registry is started by a command."""

    command: tuple[str, ...]
    env: Mapping[str, str] = {}
    lacks: str | None = None  # the program that would have to be installed first


class _Package(Struct):
    package: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class _Binary(Struct):
    cmd: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class _Distribution(Struct):
    npx: _Package | None = None
    uvx: _Package | None = None
    binary: dict[str, _Binary] | None = None


class _Listed(Struct):
    id: str
    distribution: _Distribution


class _Registry(Struct):
    agents: list[msgspec.Raw]


def of_zed(environ: Mapping[str, str]) -> Mapping[str, Started]:
    """By the id that the settings have as the agent's name: what the registry says, else what is known of it."""
    ways = dict[str, list[Started]]()
    for name, started in _listed(_copy(environ)):
        ways.setdefault(name, []).append(started)
    for agent in KNOWN.values():
        for name in agent.listed:
            ways.setdefault(name, []).extend([Started(agent.fetched), Started(agent.installed)])
    return {name: _first_installed(each, environ.get("PATH")) for name, each in ways.items()}


def _copy(environ: Mapping[str, str]) -> bytes:
    """Zed's copy of the registry, empty where it has none."""
    if sys.platform == "darwin":
        data = home(environ) / "Library/Application Support/Zed"
    else:
        data = xdg(environ, "XDG_DATA_HOME", ".local/share") / "zed"
    file = data / "external_agents/registry/registry.json"
    return _read(file)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.stat().st_size <= _LARGEST else b""
    except OSError:
        return b""


def _listed(copy: bytes) -> Iterator[tuple[str, Started]]:
    """The agents of a registry. Entries of another form are skipped: the file is Zed's and may change with Zed."""
    try:
        entries = json_decoder(_Registry).decode(copy).agents if copy else []
    except msgspec.DecodeError:
        return
    for entry in entries:
        try:
            agent = json_decoder(_Listed).decode(entry)
        except msgspec.DecodeError:
            continue
        if started := _started(agent.distribution):
            yield agent.id, started


def _started(by: _Distribution) -> Started | None:
    if by.npx:
        return Started(("npx", "-y", _VERSION.sub("", by.npx.package), *by.npx.args), by.npx.env)
    if by.uvx:
        return Started(("uvx", _VERSION.sub("", by.uvx.package), *by.uvx.args), by.uvx.env)
    for binary in (by.binary or {}).values():  # the platforms differ in the archive, not in the program's name
        return Started((PurePath(binary.cmd).name.removesuffix(".exe"), *binary.args), binary.env)
    return None


def _first_installed(ways: Sequence[Started], path: str | None) -> Started:
    """The first whose program is on the PATH, else the first of all with the name of the program that it lacks."""
    here = (started for started in ways if shutil.which(started.command[0], path=path))
    return next(here, msgspec.structs.replace(ways[0], lacks=ways[0].command[0]))
