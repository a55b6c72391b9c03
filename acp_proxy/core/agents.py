"""How each released agent counts, as a table: what its token counters and its cost mean, by exact name and version.

Read off recordings of real agents in front of a model server with known token counts. What an agent sends in `_meta`
is read in `core/meter/dialects.py`; nothing here computes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

_NEWEST = 10**9

UsageScope = Literal["turn", "session", "last_call", "call", "none"]
InputCounts = Literal["excludes_cache", "includes_cache"]
CostCounter = Literal["carried", "restarts", "turn", "unknown", "none"]


class Profile(Struct, frozen=True):
    """How one agent counts.

    `scope` is what a usage object covers: the turn, the session so far, only the last model call, or each call by
    itself; `none` when there is no such object. `cost` says whether the agent's cumulative cost goes on where it was
    when a session is loaded in a new process; of `unknown` only its figures can tell. `turn` is no cumulative one.
    """

    scope: UsageScope
    input: InputCounts | None = None  # None: only an identity of the total can tell
    decided: bool = False  # an identity of the total does not overrule `input`: the user's word, or a wrong total
    known: bool = True  # in the table, or its `scope` is the user's word
    unreported: str = ""  # paid model calls that never show in its reports
    # What its counters hold.
    thought_inside: bool = True  # thinking is part of output
    thought_unsure: bool = False  # ... with some providers; its total counts it beside output with all of them
    loses_thought: bool = False  # thinking is never told
    hides_cache: bool = False  # nor how much of the input was cached
    names_chosen: bool = False  # its rows name the model that was chosen last, also when the turn ran on another
    # When they come, and from where they count.
    counters_restart: bool = False  # scope session: counters begin at 0 in a new process
    restarts_on_model: bool = False  # scope session: and for turns after each `session/set_model`, also to the same one
    restarts_by_command: bool = False  # scope session: and by commands of its own, of which nothing but text tells
    restarts_on_close: bool = False  # scope session: and when a session that was closed is loaded in the same process
    repeats: bool = False  # a turn that failed or was cancelled repeats the usage of the one before
    slips: bool = False  # usage comes a turn late after a failure, and a prompt that waited reports the sum of both
    message_a_call: bool = False  # each model call that says something does so in a message with an id of its own
    often_silent: bool = False  # it tells what its model's provider tells, and that may be nothing, in all turns
    # Its cost.
    cost: CostCounter = "none"
    saves_cost_at_end: bool = False  # a cost that goes on does so from an older value after a process that was killed
    cost_anew: bool = False  # a cost that goes on begins at 0 where the context is cleared: then it tells a `used` of 0
    repriced: bool = False  # the cost of the whole session moves with the model, without a call
    fork_inherits: bool | None = False  # a fork's cost begins with its parent's; None: it may, and so may its counters
    shares_cost: bool = False  # each of its processes tells what all of them spent on a session
    cost_at_end: bool = False  # its cost comes when all work of the turn is done
    # The `used` of its `usage_update`.
    used_is_context: bool = True  # it is one, and `size` the window
    used_includes_output: bool = False  # it holds what the call wrote, not only its prompt
    used_in_turn: bool = False  # a new one stands for one more model call, and comes before its turn ends
    used_after_turn: bool = False  # ... or comes when its turn is over, too late for that turn's row
    contexts_a_call: int = 0  # so many different ones are told of one call at most, meanwhile; 0: they prove no call


class ProfileOverride(Struct, frozen=True):
    """`[agents."name"]` of the configuration: the user's word on how an agent counts."""

    scope: UsageScope | None = None
    input: InputCounts | None = None


UNKNOWN = Profile("turn", cost="unknown", known=False, fork_inherits=None)

_CLAUDE = Profile(
    "turn",
    "excludes_cache",
    cost="restarts",
    used_includes_output=True,
    contexts_a_call=2,  # when it begins, and when it has answered
    cost_at_end=True,
    unreported="calls cut short; the classifier of mode auto; calls of /compact have a cost but no tokens of their own",
)
_OPENCODE = Profile(
    "last_call",
    "excludes_cache",
    thought_inside=False,
    message_a_call=True,
    cost="carried",
    fork_inherits=True,
    shares_cost=True,
    cost_at_end=True,
    unreported="titles; all but the last call; turns cut short or failed (the cost has their finished steps)",
)
_OPENCODE_DOUBLED = replace(_OPENCODE, thought_inside=True, thought_unsure=True)
_CODEX = Profile(
    "turn",
    "excludes_cache",
    used_includes_output=True,
    used_in_turn=True,
    contexts_a_call=1,
    names_chosen=True,
    unreported="titles, reviewers and subagents; turns cut short or failed, or begun by words for one that was over",
)
_VIBE = Profile(
    "session",
    "includes_cache",
    cost="carried",
    repriced=True,
    used_includes_output=True,
    unreported="titles; calls cut short, also by the length of their answer",
)
_SILENT = Profile("none", used_includes_output=True, unreported="everything")
_SILENT_BUT_USED = replace(_SILENT, used_in_turn=True)

# Versions ascend. A version that was not seen counts like the newest at or below it, else like the oldest.
_TABLE: Mapping[str, tuple[tuple[str, Profile], ...]] = {
    "@agentclientprotocol/claude-agent-acp": (
        ("0.24.2", _CLAUDE),  # recorded is 0.49.0; up to 0.91.0 a new process was seen to begin at 0
        ("0.92.0", replace(_CLAUDE, cost="carried", saves_cost_at_end=True, cost_anew=True)),  # recorded is 0.100.0
    ),
    "@zed-industries/claude-code-acp": (("0.16.2", _SILENT),),
    "@zed-industries/claude-agent-acp": (("0.23.1", replace(_CLAUDE, slips=True, contexts_a_call=0)),),
    "@agentclientprotocol/codex-acp": (
        ("2.1.1", replace(_CODEX, scope="last_call", repeats=True)),  # recorded is 1.10.0
        ("2.2.1", _CODEX),  # by its code; recorded is 2.6.0
    ),
    "codex-acp": (("0.16.0", replace(_SILENT_BUT_USED, contexts_a_call=1)),),
    "gemini-cli": (
        (
            "0.61.0",
            Profile(
                "turn",
                "includes_cache",
                thought_inside=False,
                loses_thought=True,
                hides_cache=True,
                unreported="thinking; the router's calls; compression; subagents; turns cut short or failed",
            ),
        ),
    ),
    "qwen-code": (
        (
            "0.24.4",
            Profile(
                "call",
                "includes_cache",
                unreported="background subagents, suggestions, compression; answers cut off and asked for again",
            ),
        ),
    ),
    "OpenCode": (  # the bounds as its releases were seen
        ("1.1.34", _SILENT),
        ("1.1.35", _OPENCODE_DOUBLED),  # of those that were seen, 1.1.53 is the first
        ("1.14.34", _OPENCODE),  # recorded is 1.18.33
        ("7.0", _OPENCODE_DOUBLED),  # this is Kilo 7.0.33, which went by the other's name
        ("7.1", _OPENCODE),
    ),
    "Kilo": (("7.7.7", replace(_OPENCODE, fork_inherits=False)),),
    "goose": (
        (
            "1.52.0",
            Profile(
                "last_call",
                "includes_cache",
                cost="carried",
                shares_cost=True,
                repeats=True,
                hides_cache=True,
                used_includes_output=True,
                used_in_turn=True,
                contexts_a_call=1,
                unreported="titles; all but the last call; turns cut short or failed; tokens of compaction",
            ),
        ),
    ),
    "Copilot": (
        ("1.0.75", _SILENT),  # by its code
        (
            "1.0.79",  # recorded is 1.0.102
            Profile(
                "session",
                "includes_cache",
                counters_restart=True,
                restarts_on_close=True,
                unreported="calls cut short; compaction",
            ),
        ),
    ),
    "@mistralai/mistral-vibe": (  # by their code; 2.7.0 was seen, recorded is 3.0.2
        ("2.5.0", _SILENT),
        ("2.6.0", _VIBE),
        ("2.6.2", _SILENT),
        ("2.7.1", _VIBE),
    ),
    "hermes-agent": (
        (
            "0.19.0",
            Profile(
                "session",
                "includes_cache",
                counters_restart=True,
                restarts_on_model=True,
                restarts_by_command=True,
                unreported="calls cut short, also by the length of their answer; answers that were refused",
            ),
        ),
    ),
    "OpenHands CLI ACP Agent": (("1.16.0", Profile("session", "includes_cache", cost="carried")),),
    "fast-agent-acp": (("0.10.46", Profile("turn", "includes_cache", hides_cache=True)),),
    "nanocoder": (
        (
            "1.30.0",
            Profile(
                "turn",
                "includes_cache",
                hides_cache=True,
                often_silent=True,
                unreported="turns that failed; calls cut short; of some providers everything",
            ),
        ),
    ),
    "agentpool": (
        (
            "2.9.18",
            Profile(
                "turn",
                "includes_cache",
                cost="turn",
                cost_at_end=True,
                repeats=True,
                used_is_context=False,
                often_silent=True,
                unreported="turns that failed; calls cut short; of some providers everything",
            ),
        ),
    ),
    "box-agent": (
        (
            "0.9.7",
            Profile(
                "turn",
                "includes_cache",
                hides_cache=True,
                often_silent=True,
                unreported="suggestions after a turn; calls cut short; of some providers everything",
            ),
        ),
    ),
    # It gives no name, and is known by what it says: `named_by_its_words` of `core/meter/dialects.py`.
    "codebuddy": (
        ("2.163.0", Profile("call", "includes_cache", unreported="titles, suggestions; subagents; calls cut short")),
    ),
    "code-puppy": (("0.0.946", Profile("turn", "includes_cache", unreported="turns that failed; calls cut short")),),
    # Its `initialize` says 1.0.0 in all of its releases.
    "glm-acp-agent": (
        (
            "1.0.0",
            Profile(
                "last_call", "includes_cache", unreported="all but the last call of a turn with tools; cancelled turns"
            ),
        ),
    ),
    "dirac": (  # by its code, of 0.4.37
        ("0.4.0", _SILENT),
        (
            "0.4.20",
            Profile(
                "session", "excludes_cache", cost="carried", used_includes_output=True, unreported="calls cut short"
            ),
        ),
    ),
    "oh-my-pi": (
        (
            "18.2.0",
            Profile(
                "turn",
                "excludes_cache",
                cost="carried",
                fork_inherits=True,
                cost_at_end=True,
                unreported="turns that failed; calls cut short",
            ),
        ),
    ),
    # Its input holds caches, and its total counts them a second time.
    "pydantic-acp": (("1.10.0", Profile("turn", "includes_cache", decided=True)),),
    # By protocol version 1 it tells the context of each call, by version 2 the usage of the last call, too.
    "crow-cli": (
        (
            "0.1.48",
            Profile(
                "last_call",
                "includes_cache",
                hides_cache=True,
                used_includes_output=True,
                used_in_turn=True,
                contexts_a_call=1,
                often_silent=True,
                unreported="all but the last call of a turn with tools; by protocol version 1 all but contexts",
            ),
        ),
    ),
    "openclaw-acp": (("2026.9.2", replace(_SILENT, used_includes_output=False)),),  # its context once, as turns end
    "pi-acp": (("0.0.34", _SILENT_BUT_USED),),
    # It tells the context of each call, and the cost where its provider does.
    "nooa-acp": (
        (
            "0.0.10",
            Profile("none", cost="restarts", used_in_turn=True, contexts_a_call=1, unreported="all but contexts"),
        ),
    ),
    "Kimi Code CLI": (  # 1 is the older Kimi CLI; seen were 0.43.1, 1.51.0, and from 2.0.2 on
        ("0.10.0", replace(_SILENT, used_after_turn=True)),
        ("1.0.0", _SILENT),
        ("2.0.0", replace(_SILENT, used_after_turn=True)),
    ),
    "cline": (("3.0.65", _SILENT),),
}

_BY_TITLE = {"Pydantic ACP": "pydantic-acp"}  # where the name is that of the agent that somebody has built


def profile_of(
    name: str | None,
    version: str | None,
    overrides: Mapping[str, ProfileOverride] | None = None,
    title: str | None = None,
) -> Profile:
    """The profile of an agent by the name and version of its `initialize`; `UNKNOWN` for a name not in the table.

    By its title where that tells the framework that it was built with.
    """
    profile = _in_table(name if name in _TABLE else _BY_TITLE.get(title or ""), version)
    override = (overrides or {}).get(name or "")
    if override is None:
        return profile
    return replace(
        profile,
        scope=override.scope or profile.scope,
        input=override.input or profile.input,
        decided=override.input is not None,
        known=profile.known or override.scope is not None,
    )


def how_it_counts(profile: Profile) -> str:
    """One line for people, e.g. for `doctor`."""
    what = {
        "turn": "usage per turn",
        "session": "cumulative usage, taken as differences",
        "last_call": "usage of the last call only: turns with tools are at least that",
        "call": "usage of each call, summed",
        "none": "no usage: estimated from its context and from characters",
    }[profile.scope]
    if not profile.known:
        return f"not in the table: {what}, until its counters say otherwise"
    return f"{what}; never reported: {profile.unreported}" if profile.unreported else what


def _in_table(name: str | None, version: str | None) -> Profile:
    rows = _TABLE.get(name or "")
    if rows is None:
        return UNKNOWN
    wanted = _order(version)
    below = [profile for known, profile in rows if _order(known) <= wanted]
    return below[-1] if below else rows[0][1]


def _order(version: str | None) -> tuple[int, ...]:
    """`1.18.33-beta` as (1, 18, 33), `1.0` as (1, 0, 0).

    What is no version is newer than all: people keep their agents up to date.
    """
    found = re.match(r"v?(\d{1,9}(?:\.\d{1,9})*)", version or "")
    if found is None:
        return (_NEWEST,)
    parts = [int(part) for part in found[1].split(".")]
    return (*parts, *[0] * (3 - len(parts)))
