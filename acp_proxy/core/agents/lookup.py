"""Finds how an agent counts by exact name and version; the user's configuration overrides it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.agents.profile import UNKNOWN, Profile
from acp_proxy.core.agents.table import BY_TITLE, TABLE

_NEWEST = 10**9


def profile_of(
    name: str | None,
    version: str | None,
    overrides: Mapping[str, ProfileOverride] | None = None,
    title: str | None = None,
) -> Profile:
    """The profile of an agent by the name and version of its `initialize`; `UNKNOWN` for a name not in the table.

    Looks at the title, too, if it names the framework that the agent was built with.
    """
    profile = _in_table(name if name in TABLE else BY_TITLE.get(title or ""), version)
    override = (overrides or {}).get(name or "")
    if override is None:
        return profile
    tokens, overlap = profile.tokens, profile.overlap
    return replace(
        profile,
        tokens=replace(tokens, scope=override.scope or tokens.scope),
        overlap=replace(
            overlap,
            input=override.input or overlap.input,
            decided=override.input is not None,
            known=overlap.known or override.scope is not None,
        ),
    )


def how_it_counts(profile: Profile) -> str:
    """One line for people, e.g. for `doctor`."""
    what = {
        "turn": "usage per turn",
        "session": "cumulative usage, taken as differences",
        "last_call": "usage of the last call only: turns with tools are at least that",
        "call": "usage of each call, summed",
        "none": "no usage: estimated from its context and from characters",
    }[profile.tokens.scope]
    if not profile.known:
        return f"not in the table: {what}, until its counters say otherwise"
    return f"{what}; never reported: {profile.unreported}" if profile.unreported else what


def _in_table(name: str | None, version: str | None) -> Profile:
    rows = TABLE.get(name or "")
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
