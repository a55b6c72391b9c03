"""Patterns over who asks and what is used."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.scope import DIMENSIONS, EVERYTHING, Dimension, Scope, Subject, fits
from tests.core.accounts import ALICE, budget


@pytest.mark.parametrize(
    ("pattern", "value", "matches"),
    [
        ("core", "core", True),
        ("core", "Core", False),
        ("core", "core2", False),
        ("*", "", True),
        ("claude-*", "claude-opus-5-5", True),
        ("claude-*", "claude", False),
        ("*-mini", "gpt-6-mini", True),
        ("*opus*", "claude-opus-5-5", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("ab*b", "ab", False),  # one b is not both
        ("*a*a", "a", False),
        ("*ab*ba*", "aba", False),
        ("*a*b*", "aba", True),  # the first a, not the last
        ("*a*", "ab", True),
        ("gpt-6.1*", "gpt-601", False),  # a dot is a dot
        ("sonnet[1m]", "sonnet[1m]", True),  # and brackets are brackets
        ("one*two", "one\ntwo", True),
    ],
)
def test_a_pattern_is_compared_exactly_but_for_stars(pattern: str, value: str, matches: bool) -> None:
    assert fits(pattern, value) is matches


@given(st.text("ab*.", max_size=8), st.text("ab.", max_size=12))
def test_a_star_stands_for_any_text_as_in_a_shell(pattern: str, value: str) -> None:
    assert fits(pattern, value) == fnmatchcase(value, pattern)


def test_a_long_name_is_compared_with_many_stars_in_no_time() -> None:
    began = time.process_time()
    assert not fits("*a*a*a*b", "a" * 1500)  # as a pattern of `re` it takes seconds, and names come from agents
    assert time.process_time() - began < 0.5


def test_a_scope_that_says_nothing_is_everything() -> None:
    nobody = replace(ALICE, team=None, project=None, model=None, session=None)
    assert budget(scope=EVERYTHING).matches(nobody)
    assert EVERYTHING.texts == {}
    assert not EVERYTHING.leaves_out("plan")


def test_a_list_matches_with_one_of_its_patterns_and_all_dimensions_must_match() -> None:
    scope = Scope(user=("bob", "al*"), team=("core",))
    assert budget(scope=scope).matches(ALICE)
    assert not budget(scope=scope).matches(replace(ALICE, user="carol"))
    assert not budget(scope=scope).matches(replace(ALICE, team="web"))
    assert scope.texts == {"user": ["bob", "al*"], "team": ["core"]}


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_each_dimension_is_compared_with_its_own_value(dimension: Dimension) -> None:
    value = ALICE.of(dimension)
    assert value is not None
    assert budget(scope=replace(Scope(), **{dimension: (value,)})).matches(ALICE)
    assert not budget(scope=replace(Scope(), **{dimension: (value + "x",)})).matches(ALICE)


@pytest.mark.parametrize(
    ("dimension", "without"),
    [
        ("team", replace(ALICE, team=None)),
        ("project", replace(ALICE, project=None)),
        ("model", replace(ALICE, model=None)),
    ],
)
def test_what_has_no_value_matches_no_pattern_not_even_a_star(dimension: Dimension, without: Subject) -> None:
    assert budget(scope=replace(Scope(), **{dimension: ("*",)})).matches(ALICE)
    assert not budget(scope=replace(Scope(), **{dimension: ("*",)})).matches(without)
