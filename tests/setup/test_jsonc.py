"""JSON with comments, in any layout: the values are right, and so is where each stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.setup.jsonc import Array, Node, NotJsonError, Object, parse
from tests.setup.layouts import LAYOUTS, VALUES, laid_out, plain


def inside(node: Node) -> Iterator[Node]:
    yield node
    match node:
        case Object():
            for member in node.members:
                yield from inside(member.value)
        case Array():
            for item in node.items:
                yield from inside(item)


def damaged(value: object, layout: Random, by: str) -> str:
    """JSON of which somewhere a character or two are others, or none."""
    text = laid_out(value, layout)
    at = layout.randint(0, len(text))
    return text[:at] + by + text[at + layout.randint(0, 2) :]


@given(VALUES, LAYOUTS)
def test_a_value_is_read_from_any_layout(value: object, layout: Random) -> None:
    assert plain(parse(laid_out(value, layout))) == value


@given(VALUES, LAYOUTS)
def test_every_value_stands_where_it_is_said_to_stand(value: object, layout: Random) -> None:
    text = laid_out(value, layout)
    for node in inside(parse(text)):
        part = text[node.start : node.end]
        assert part == part.strip()
        assert plain(parse(part)) == plain(node)


SIGNS = st.sampled_from('{}[]:,"\\/* \n\r\tab1-.eE\ufeff') | st.characters()


@given(st.text(SIGNS, max_size=40) | st.builds(damaged, VALUES, LAYOUTS, st.text(SIGNS, max_size=2)))
def test_whatever_is_not_json_is_said_to_be_none(text: str) -> None:
    try:
        node = parse(text)
    except NotJsonError as error:
        assert 1 <= error.line <= text.count("\n") + 1  # noqa: PT017 - or it is JSON
    else:
        assert repr(plain(parse(text[node.start : node.end]))) == repr(plain(node))  # NaN is not itself


@given(VALUES)
def test_what_python_writes_is_read_as_python_reads_it(value: object) -> None:
    text = json.dumps(value, indent=2)
    assert plain(parse(text)) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("", 1, "a value"),
        ("// nothing but this\n", 2, "a value"),
        ('{\n  "a": 1\n  "b": 2\n}', 3, "a comma or }"),
        ('{"a" 1}', 1, "a colon"),
        ("{a: 1}", 1, "text in double quotes"),
        ("{'a': 1}", 1, "text in double quotes"),
        ('{"a": "line\nbreak"}', 1, "text in double quotes"),
        ('{"a": }', 1, "a value"),
        ('{"a": 1', 1, "a comma or }"),
        ('{"a": 1} }', 1, "the end of the file"),
        ("{,}", 1, "text in double quotes"),
        ("[1 2]", 1, "a comma or ]"),
        ("[1,,2]", 1, "a value"),
        ("/* no end", 1, "a value"),
        ("[" * 100_000, 1, "no more than 200 levels"),
        ('{"a":' * 100_000, 1, "no more than 200 levels"),
        ("1" * 100_000, 1, "a value"),
    ],
)
def test_an_error_says_where_and_what_was_expected(text: str, line: int, expected: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        parse(text)
    assert str(caught.value) == f"line {line}: expected {expected}"


def test_of_members_with_one_key_the_last_counts() -> None:
    node = parse('{"a": "first", "a": "last"}')
    assert isinstance(node, Object)
    assert node.text("a") == "last"
