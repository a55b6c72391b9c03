"""OpenCode's book before 1.2: a JSON file per session and per message below `storage`. Seen in 1.1.53.

Its first start of 1.2 or later copies them into its database, and leaves them where they are: both have calls of the
same ids. Thinking was counted inside the output on some routes and beside it on others, and nothing says which: such
a call is not understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from msgspec import Struct, field

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.lines import decoded
from acp_proxy.books.opencode import Assistant, Origin, Step, Time, Tokens, call_of, data_directory, expected
from acp_proxy.books.tree import below
from acp_proxy.system.decoding import json_decoder


class _Session(Struct):
    id: str
    version: str
    directory: str
    parent: str | None = field(name="parentID", default=None)


class _Role(Struct):
    role: str


class _Message(Struct):
    role: str
    time: Time
    tokens: Tokens
    cost: Decimal
    provider: str = field(name="providerID")
    model: str = field(name="modelID")
    finish: str | None = None
    summary: bool | None = None


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """A file per session, the oldest first: a fork has copies of its parent's messages. Its ids count time down."""
    storage = data_directory("opencode", home, environ) / "storage"
    yield from sorted(below(storage / "session", ".json"), key=lambda path: path.name, reverse=True)


def messages(session: Path) -> Iterator[Path]:
    """Those of a session's file."""
    return below(session.parents[2] / "message" / session.stem, ".json")


def read_messages(session: bytes, messages: Iterable[bytes]) -> Iterator[Call | NotUnderstood]:
    """Of one session's file and those of its messages. A fork's copies have the ids of what they are copies of."""
    about = decoded(session, _Session)
    if about is None:
        yield NotUnderstood("expected a session with its id, version and directory")
        return
    origin = Origin(about.id, about.parent, about.directory, about.version)
    for message in messages:
        try:
            call = _call(origin, message)
        except (ValueError, RecursionError) as error:
            yield NotUnderstood(expected(error), about.version)
        else:
            if call is not None:
                yield call


def _call(origin: Origin, message: bytes) -> Call | None:
    """None: the message is of another role, or its call was cut short, failed, or still runs. Raises as `call_of`."""
    if json_decoder(_Role).decode(message).role != "assistant":
        return None
    told = json_decoder(_Message).decode(message)
    if told.finish is None:
        return None
    assistant = Assistant(told.role, told.time, told.provider, told.model, told.finish, told.summary)
    return call_of(origin, assistant, Step(told.tokens, told.cost))
