"""The table of released agents: what their token counters, costs and contexts mean. Nothing here computes.

Read off recordings of real agents in front of a model server with known token counts. What an agent sends in `_meta`
is read in `core/meter/dialects.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from acp_proxy.core.agents.profile import Context, Cost, Overlap, Profile, Tokens

_BESIDE, _INSIDE = Overlap("excludes_cache"), Overlap("includes_cache")  # what was cached, and the input
_HIDDEN = Overlap("includes_cache", hides_cache=True)
_CARRIED = Cost("carried")
_EACH_CALL = Context("each call", holds_output=True, a_call=1)
_FAILED = "turns that failed; calls cut short"

_CLAUDE = Profile(
    Tokens("turn"),
    _BESIDE,
    Cost("restarts", at_end=True),
    Context(holds_output=True, a_call=2),  # when the call begins, and when it has answered
    "calls cut short; the classifier of mode auto; calls of /compact have a cost but no tokens of their own",
)
_CODEX = Profile(
    Tokens("turn", names_chosen=True),
    _BESIDE,
    context=_EACH_CALL,
    unreported="titles, reviewers and subagents; turns cut short or failed, or begun by words for one that was over",
)
_OPENCODE = Profile(
    Tokens("last_call", message_a_call=True),
    Overlap("excludes_cache", thinking="beside"),
    Cost("carried", fork_inherits=True, shared=True, at_end=True),
    unreported="titles; all but the last call; turns cut short or failed (the cost has their finished steps)",
)
_OPENCODE_DOUBLED = replace(_OPENCODE, overlap=Overlap("excludes_cache", thinking="either"))
_VIBE = Profile(
    Tokens("session"),
    _INSIDE,
    Cost("carried", frozenset({"model"})),
    Context(holds_output=True),
    "titles; calls cut short, also by the length of their answer",
)
_SILENT = Profile(Tokens("none"), context=Context(holds_output=True), unreported="everything")
_KIMI = replace(_SILENT, context=Context("after turn", holds_output=True))

# Versions ascend. A version that was not seen counts like the newest at or below it, else like the oldest.
TABLE: Mapping[str, tuple[tuple[str, Profile], ...]] = {
    "@agentclientprotocol/claude-agent-acp": (
        ("0.24.2", _CLAUDE),  # recorded is 0.49.0; up to 0.91.0 a new process was seen to begin at 0
        (  # recorded is 0.100.0
            "0.92.0",
            replace(_CLAUDE, cost=Cost("carried", frozenset({"kill", "clear"}), at_end=True)),
        ),
    ),
    "@zed-industries/claude-code-acp": (("0.16.2", _SILENT),),
    "@zed-industries/claude-agent-acp": (
        (
            "0.23.1",
            replace(
                _CLAUDE,
                tokens=Tokens("turn", after_failure="late"),
                context=Context(holds_output=True),
                unreported="calls cut short",
            ),
        ),
    ),
    "@agentclientprotocol/codex-acp": (
        (  # recorded is 1.10.0
            "2.1.1",
            replace(_CODEX, tokens=Tokens("last_call", after_failure="repeats", names_chosen=True)),
        ),
        ("2.2.1", _CODEX),  # by its code; recorded is 2.6.0
    ),
    "codex-acp": (("0.16.0", replace(_SILENT, context=_EACH_CALL)),),
    "gemini-cli": (
        (
            "0.61.0",
            Profile(
                Tokens("turn"),
                Overlap("includes_cache", thinking="untold", hides_cache=True),
                unreported="thinking; the router's calls; compression; subagents; turns cut short or failed",
            ),
        ),
    ),
    "qwen-code": (
        (
            "0.24.4",
            Profile(
                Tokens("call"),
                _INSIDE,
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
    "Kilo": (("7.7.7", replace(_OPENCODE, cost=Cost("carried", shared=True, at_end=True))),),
    "goose": (
        (
            "1.52.0",
            Profile(
                Tokens("last_call", after_failure="repeats"),
                _HIDDEN,
                Cost("carried", shared=True),
                _EACH_CALL,
                "titles; all but the last call; turns cut short or failed; tokens of compaction",
            ),
        ),
    ),
    "Copilot": (
        ("1.0.75", _SILENT),  # by its code
        (
            "1.0.79",  # recorded is 1.0.102
            Profile(
                Tokens("session", restarts=frozenset({"process", "close"})),
                _INSIDE,
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
                Tokens("session", restarts=frozenset({"process", "model", "command"})),
                _INSIDE,
                unreported="calls cut short, also by the length of their answer; answers that were refused",
            ),
        ),
    ),
    "OpenHands CLI ACP Agent": (("1.16.0", Profile(Tokens("session"), _INSIDE, _CARRIED)),),
    "fast-agent-acp": (("0.10.46", Profile(Tokens("turn"), _HIDDEN)),),
    "nanocoder": (
        (
            "1.30.0",
            Profile(Tokens("turn", often_silent=True), _HIDDEN, unreported=f"{_FAILED}; of some providers everything"),
        ),
    ),
    "agentpool": (
        (
            "2.9.18",
            Profile(
                Tokens("turn", often_silent=True, after_failure="repeats"),
                _INSIDE,
                Cost("turn", at_end=True),
                Context("never"),
                f"{_FAILED}; of some providers everything",
            ),
        ),
    ),
    "box-agent": (
        (
            "0.9.7",
            Profile(
                Tokens("turn", often_silent=True),
                _HIDDEN,
                unreported="suggestions after a turn; calls cut short; of some providers everything",
            ),
        ),
    ),
    # It gives no name, and is known by what it says: `named_by_its_words` of `core/meter/dialects.py`.
    "codebuddy": (
        ("2.163.0", Profile(Tokens("call"), _INSIDE, unreported="titles, suggestions; subagents; calls cut short")),
    ),
    "code-puppy": (("0.0.946", Profile(Tokens("turn"), _INSIDE, unreported=_FAILED)),),
    # Its `initialize` says 1.0.0 in all of its releases.
    "glm-acp-agent": (
        (
            "1.0.0",
            Profile(
                Tokens("last_call"),
                _INSIDE,
                unreported="all but the last call of a turn with tools; cancelled turns",
            ),
        ),
    ),
    "dirac": (  # by its code, of 0.4.37
        ("0.4.0", _SILENT),
        ("0.4.20", Profile(Tokens("session"), _BESIDE, _CARRIED, Context(holds_output=True), "calls cut short")),
    ),
    "oh-my-pi": (
        (
            "18.2.0",
            Profile(Tokens("turn"), _BESIDE, Cost("carried", fork_inherits=True, at_end=True), unreported=_FAILED),
        ),
    ),
    # Its input holds caches, and its total counts them a second time.
    "pydantic-acp": (("1.10.0", Profile(Tokens("turn"), Overlap("includes_cache", decided=True), unreported=_FAILED)),),
    # By protocol version 1 it tells the context of each call, by version 2 the usage of the last call, too.
    "crow-cli": (
        (
            "0.1.48",
            Profile(
                Tokens("last_call", often_silent=True),
                _HIDDEN,
                context=_EACH_CALL,
                unreported="all but the last call of a turn with tools; by protocol version 1 all but contexts",
            ),
        ),
    ),
    "openclaw-acp": (("2026.9.2", replace(_SILENT, context=Context())),),  # its context once, as turns end
    "pi-acp": (("0.0.34", replace(_SILENT, context=Context("each call", holds_output=True))),),
    # It tells the context of each call, and the cost where its provider does.
    "nooa-acp": (
        (
            "0.0.10",
            Profile(
                Tokens("none"),
                cost=Cost("restarts"),
                context=Context("each call", a_call=1),
                unreported="all but contexts",
            ),
        ),
    ),
    "Kimi Code CLI": (  # 1 is the older Kimi CLI; seen were 0.43.1, 1.51.0, and from 2.0.2 on
        ("0.10.0", _KIMI),
        ("1.0.0", _SILENT),
        ("2.0.0", _KIMI),
    ),
    "cline": (("3.0.65", _SILENT),),
}

BY_TITLE = {"Pydantic ACP": "pydantic-acp"}  # where the name is that of the agent that somebody has built
