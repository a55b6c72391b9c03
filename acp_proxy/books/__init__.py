"""The session files of agents ("books"): what agents write about each model call into files of their own.

A reader is pure: it is given bytes or rows and yields calls. Where the files are is in `places`. Content of a session
(prompts, answers, file names, titles) never leaves a reader.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage

CallKind = Literal["main", "subagent", "compaction", "side"]


class Call(Struct, frozen=True):
    """One model call, as the agent's file has it."""

    id: str  # unique for this agent, also where the same call stands in several files
    session: str  # the id that ACP calls `sessionId`, else the agent's own
    at: int  # when the agent wrote it, Unix time in nanoseconds
    model: str | None  # as the agent names it
    usage: Usage
    kind: CallKind = "main"
    cost: Money | None = None  # as the agent tells it; None: it tells none
    parent: str | None = None  # the session that started this subagent, or that this session was forked from
    version: str | None = None  # of the agent
    cwd: str | None = None  # the session's directory, only to find the name of its project


class NotUnderstood(Struct, frozen=True):
    """A record that should be a call and has another form. It is counted and reported, never guessed."""

    reason: str  # what was expected; without content of the file
    version: str | None = None  # of the agent that wrote it
