"""Streams that know no UTF-8: what they lack is written in other characters, and is never a traceback."""

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
    """Let a stream write whatever it is given; one in UTF-8 stays as it is, and so does what is no file."""
    if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
        codecs.register_error(_ERRORS, _alike)
        stream.reconfigure(errors=_ERRORS)


def _alike(error: UnicodeError) -> tuple[str, int]:
    """A column for a column, so that tables stay aligned."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_ALIKE.get(sign) or "?" * width_of(sign) for sign in lacking), error.end
