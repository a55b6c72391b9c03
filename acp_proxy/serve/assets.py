"""The files of the page, read once: what is not among them cannot be asked for. No path of a request names a file."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable

from msgspec import Struct

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".txt": "text/plain; charset=utf-8",
}
_START = "index.html"
_NO_PAGE = b"<!doctype html><html lang=en><meta charset=utf-8><title>acp-proxy</title><p>This build has no page.\n"


class Asset(Struct, frozen=True):
    """A file as it is sent, plain or gzipped; `etag` has its quotation marks."""

    body: bytes
    zipped: bytes
    type: str
    etag: str


def page_assets() -> Mapping[str, Asset]:
    """By the path of their URL; `/` is the page itself."""
    found = {"/": asset(_START, _NO_PAGE)}
    for name, body in read_files(files("acp_proxy.serve").joinpath("page")):
        found["/" if name == _START else f"/{name}"] = asset(name, body)
    return found


def read_files(directory: Traversable) -> Iterator[tuple[str, bytes]]:
    """Those that a browser may ask for, by name."""
    for file in sorted(directory.iterdir(), key=lambda file: file.name):
        if file.is_file() and _suffix(file.name) in _TYPES:
            yield file.name, file.read_bytes()


def asset(name: str, body: bytes) -> Asset:
    return Asset(
        body,
        gzip.compress(body, mtime=0),
        _TYPES[_suffix(name)],
        f'"{blake2b(body, digest_size=12).hexdigest()}"',
    )


def _suffix(name: str) -> str:
    return f".{name.rpartition('.')[2]}"
