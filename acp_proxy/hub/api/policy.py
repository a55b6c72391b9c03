"""Answers about the policy: what holds for who asks, its changes and its history.

Administrators change all of it, leads the budgets that they have set for their teams.
"""

from __future__ import annotations

from collections.abc import Callable

from acp_proxy.config.files import ConfigError
from acp_proxy.hub.api.desk import ADMINISTRATOR, SEES_ALL, Answer, Desk, Tagged, reads, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.policy import history_for, not_theirs, shown_to, tag_for, version_of
from acp_proxy.ledger.hub.policy import (
    CHANGE_POLICY,
    POLICY,
    POLICY_HISTORY,
    SET_POLICY,
    Changes,
    Document,
    Kept,
)
from acp_proxy.ledger.hub.wire import Nothing
from acp_proxy.policy import changed, policy_of

_MOST = 100  # versions that are shown


def policy(desk: Desk, _: Nothing) -> Tagged[Kept]:
    kept = desk.policies.of(desk.ledger, desk.who.organisation).kept
    return Tagged(tag_for(desk.who, kept), shown_to(desk.who, kept))


def set_policy(desk: Desk, asked: Document) -> Tagged[Kept]:
    return _changed(desk, lambda _: asked)


def change_policy(desk: Desk, asked: Changes) -> Tagged[Kept]:
    return _changed(desk, lambda before: changed(before, asked))


def history(desk: Desk, _: Nothing) -> list[Kept]:
    return history_for(desk.who, desk.policies.store(desk.ledger, desk.who.organisation).history(_MOST))


def changed_by(desk: Desk, change: Callable[[Document], Document]) -> Kept:
    """The new version, with its lines in the log. Raises RefusedError, and what `change` raises."""

    def checked(before: Document) -> Document:
        after = change(before)
        policy_of(after)
        if wrong := not_theirs(desk.who, before, after):
            raise RefusedError(403, wrong)
        return after

    expected = None
    if desk.if_match not in (None, "*"):
        expected = version_of(desk.if_match or "")
        if expected is None:
            raise RefusedError(412, "If-Match: expected the ETag of the policy")
    organisation = desk.who.organisation
    try:
        kept = desk.policies.store(desk.ledger, organisation).change(
            checked, expected, desk.who.user, desk.now // 10**9
        )
    except ConfigError as error:
        raise RefusedError(400, str(error)) from error
    desk.policies.forget(organisation)
    if kept is None:
        raise RefusedError(412, "the policy was changed meanwhile: read it again")
    return kept


def _changed(desk: Desk, change: Callable[[Document], Document]) -> Tagged[Kept]:
    kept = changed_by(desk, change)
    return Tagged(tag_for(desk.who, kept), shown_to(desk.who, kept))


ANSWERS: list[Answer] = [
    reads(POLICY, policy),
    writes(SET_POLICY, set_policy, ADMINISTRATOR),
    writes(CHANGE_POLICY, change_policy, (*ADMINISTRATOR, "lead")),
    reads(POLICY_HISTORY, history, (*SEES_ALL, "lead")),
]
