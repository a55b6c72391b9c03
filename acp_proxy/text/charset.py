"""Output to streams without UTF-8: replaces characters that they cannot encode, instead of a traceback."""

from __future__ import annotations

import codecs
from io import TextIOWrapper
from typing import TextIO

from acp_proxy.text.figures import width_of

_ERRORS = "acp_proxy.alike"
_ALIKE = {
    "≥": ">",
    "│": "|",
    "·": ".",
    "…": "~",
    "▾": "v",
    "→": ">",
    "←": "<",
    "€": "E",
    "×": "x",
    "–": "-",
    **dict.fromkeys("▏▎▍", "|"),  # the end of a bar; a `?` there would look like an unknown cost
    **dict.fromkeys("▁▂▃▄▅▆▇█▌▋▊▉", "#"),
}


def make_do(stream: TextIO | None) -> None:
    """Make a stream accept any text; does nothing for UTF-8 streams, and for objects that are no files."""
    if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
        codecs.register_error(_ERRORS, _alike)
        stream.reconfigure(errors=_ERRORS)


def _alike(error: UnicodeError) -> tuple[str, int]:
    """A column for a column, so that tables stay aligned."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_ALIKE.get(sign) or "?" * width_of(sign) for sign in lacking), error.end
