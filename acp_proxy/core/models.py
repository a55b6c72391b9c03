"""The names that a reported model id can stand for, the most exact first.

Never matches by prefix or substring: a lookup takes the first name that exists, or the model is unknown.
Nothing here knows a price. The rules in words: `docs/pricing.md`, "Which model".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

LONGEST = 300  # characters; an ARN has about 150, and nothing that is longer is the id of a model

EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"})

# Where a bare id is looked for. No two of these sell one id, so that the order decides nothing: scripts/build-catalog
# sees to it.
LABS = (
    "anthropic",
    "openai",
    "google",
    "xai",
    "deepseek",
    "moonshotai",
    "zai",
    "alibaba",
    "mistral",
    "minimax",
    "meta",
    "xiaomi",
    "cursor",
    "cognition",
    "inception",
    "stepfun",
    "tencent",
    "bytedance",
    "poolside",
    "longcat",
    "inclusionai",
    "thinkingmachines",
    "sakana",
    "sensenova",
    "upstage",
    "arcee",
    "cohere",
    "perplexity",
    "ai21",
    "amazon",
)

# Other spellings of a lab, as agents and gateways write them. Vertex sells at the lab's price at its global endpoint.
LAB_OF_PREFIX = {lab: lab for lab in LABS} | {
    "gemini": "google",
    "models": "google",  # models/gemini-..., the Gemini API's own resource name
    "google-vertex": "google",
    "google-vertex-anthropic": "anthropic",
    "x-ai": "xai",
    "moonshot": "moonshotai",
    "kimi": "moonshotai",
    "z-ai": "zai",
    "zai-org": "zai",
    "qwen": "alibaba",
    "mistralai": "mistral",
    "minimaxai": "minimax",
    "deepseek-ai": "deepseek",
    "stepfun-ai": "stepfun",
    "byteplus": "bytedance",
}

_ALIASES = frozenset(
    {"default", "opus", "sonnet", "haiku", "fable", "opusplan", "best", "pro", "flash"}
    | {"coder-model", "vision-model", "kimi-for-coding", "<synthetic>"}
)
_AFFIX = re.compile(r"(?:\([\w.-]+\)|,thinking|\[(?P<hint>[^\[\]]*)\])$")
_DATE = re.compile(r"-20\d\d(?:(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])|-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))$")
_BEDROCK = re.compile(
    r"(?:(?P<region>global|us-gov|apac|us|eu|jp|au|ca|in)\.)?(?P<lab>[a-z0-9]+)\.(?P<name>[a-z][\w.-]*)"
)
_BEDROCK_VERSION = re.compile(r"(?:-v\d+)?(?::\d+)?$")
_CLAUDE_VERSION = re.compile(r"claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?:-|$)")


@lru_cache(maxsize=64)  # asked at the end of every turn
def is_alias(model: str) -> bool:
    """Whether the id names no fixed model: a default, a router, or a family whose newest member changes."""
    bare = _bare(model)
    if bare is None:
        return False
    name = next(reversed(_without_effort(bare))).rpartition("/")[2]
    return name in _ALIASES or name.startswith("auto")


def alias_names(model: str) -> Iterator[str]:
    """The keys of an alias or a price by which the user may mean this id, the reported one first."""
    yield model.strip().lower()
    bare = _bare(model)
    if bare is not None:
        yield from _without_effort(bare)


def window_hint(model: str) -> int | None:
    """The window in tokens that a `[1m]` asks for."""
    return 1_000_000 if "[1m]" in model.lower() else None


def row_names(model: str) -> Iterator[str]:
    """Names of catalog rows that the id may stand for, lower case, the most exact first. Empty when it names none."""
    bare = _bare(model)
    if bare is None or is_alias(model):
        return
    for name in _without_effort(bare):
        yield from _row_names(name)


def canonical(name: str) -> str:
    """One spelling for catalog rows: lower case, and Claude's dots as dashes."""
    name = name.lower()
    head, slash, tail = name.rpartition("/")
    return head + slash + tail.replace(".", "-") if tail.startswith("claude-") else name


def without_lab(name: str) -> str:
    """`canonical`, of a lab's model without that lab, whose prefix may be left out."""
    prefix, slash, model = canonical(name).partition("/")
    return model if slash and prefix in LAB_OF_PREFIX else f"{prefix}{slash}{model}"


def costs_more_by_region(claude: str) -> bool:
    """Whether regional endpoints sell this Claude at 110 % of its list price: from 4.5 on."""
    version = _CLAUDE_VERSION.match(claude)
    return version is not None and tuple(int(number) for number in version.groups() if number) >= (4, 5)


def _bare(model: str) -> str | None:
    """Without qwen-code's wrapping, the login, the mode, and what brackets hint at; None when they name a product."""
    if len(model) > LONGEST:
        return None
    name = model.strip().lower()
    if name.startswith("$runtime|"):  # qwen-code: $runtime|openai|qwen3-coder-plus(openai)
        name = name.rpartition("|")[2]
    while affix := _AFFIX.search(name):
        hint = affix["hint"]
        if hint is not None and hint != "1m" and hint not in EFFORTS:
            return None
        name = name[: affix.start()]
    return name or None


def _without_effort(name: str) -> tuple[str, ...]:
    """The name itself first: some end in `/max` and mean it."""
    head, _, tail = name.rpartition("/")
    return (name, head) if head and tail in EFFORTS else (name,)


def _row_names(name: str) -> Iterator[str]:
    if name.startswith("arn:"):
        name = name.rpartition("/")[2]
        yield from _bedrock_names(name)
        return
    name = re.sub(r"@default$", "", re.sub(r"@(?=20\d{6}$)", "-", name))  # Vertex
    prefix, slash, rest = name.partition("/")
    if prefix in ("bedrock", "amazon-bedrock"):
        yield from _bedrock_names(rest)
    elif lab := LAB_OF_PREFIX.get(prefix) if slash else None:
        yield from _spellings(f"{lab}/{rest}")
    elif slash:  # a gateway sells at a price of its own
        yield from _spellings(name)
    else:
        for lab in LABS:
            yield from _spellings(f"{lab}/{name}")
        yield from _bedrock_names(name)
    provider, colon, model = name.partition(":")
    if colon and "/" not in provider:  # hermes-agent: anthropic:claude-opus-5-5
        yield from _row_names(f"{provider}/{model}")


def lab_and_model(row: str) -> tuple[str | None, str]:
    """The two parts of the name of a lab's row; None, and all of it, of a gateway's."""
    lab, _, model = row.partition("/")
    return (lab, model) if lab in LABS else (None, row)


def _spellings(name: str) -> Iterator[str]:
    yield name
    plain = canonical(name)
    if plain != name:
        yield plain
    undated = _DATE.sub("", plain)
    if undated != plain:
        yield undated


def _bedrock_names(name: str) -> Iterator[str]:
    """`us.anthropic.claude-sonnet-4-5-20250929-v1:0`: Claude at its list or regional price, others by own rows."""
    found = _BEDROCK.fullmatch(_BEDROCK_VERSION.sub("", name))
    if found is None:
        return
    everywhere = found["region"] == "global"
    for spelling in _spellings(found["name"]):
        if found["lab"] != "anthropic":
            yield f"bedrock-{'global' if everywhere else 'regional'}/{found['lab']}.{spelling}"
        elif everywhere or not costs_more_by_region(spelling):
            yield f"anthropic/{spelling}"
        else:
            yield f"bedrock-regional/{spelling}"
