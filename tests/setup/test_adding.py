"""An agent added to settings as people lay them out: it stands where they would have put it."""

from __future__ import annotations

import pytest

from acp_proxy.setup.adding import added
from acp_proxy.setup.agents import Shape

SHAPE = Shape(("servers",))
ENTRY = """\
"New": {
      "command": "acp-proxy",
      "args": ["run", "--", "agent"]
    }"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{\n  "servers": {\n    "A": {} // mine\n  }\n}',
            f'{{\n  "servers": {{\n    "A": {{}}, // mine\n    {ENTRY}\n  }}\n}}',
        ),
        (
            '{\n  "servers": {\n    "A": {}, /* mine */\n  },\n}',
            f'{{\n  "servers": {{\n    "A": {{}}, /* mine */\n    {ENTRY},\n  }},\n}}',
        ),
        (
            '{\n  "servers": {\n    // none yet\n  }\n}',
            f'{{\n  "servers": {{\n    // none yet\n    {ENTRY}\n  }}\n}}',
        ),
        ('{\n  "theme": "One"\n}\n', f'{{\n  "theme": "One",\n  "servers": {{\n    {ENTRY}\n  }}\n}}\n'),
        ("", f'{{\n  "servers": {{\n    {ENTRY}\n  }}\n}}\n'),
        (
            '{"servers": {}}',
            '{"servers": {\n  "New": {\n    "command": "acp-proxy",\n    "args": ["run", "--", "agent"]\n  }\n}}',
        ),
        (
            '{"servers": {/* none yet */}}',
            '{"servers": {/* none yet */\n  "New": {\n    "command": "acp-proxy",\n'
            '    "args": ["run", "--", "agent"]\n  }\n}}',
        ),
        (
            '{\n  "servers": {"A": {}}\n}',
            f'{{\n  "servers": {{"A": {{}},\n    {ENTRY}\n  }}\n}}',
        ),
        (
            '{\r\n\t"servers": {}\r\n}',
            '{\r\n\t"servers": {\r\n\t\t"New": {\r\n\t\t\t"command": "acp-proxy",\r\n'
            '\t\t\t"args": ["run", "--", "agent"]\r\n\t\t}\r\n\t}\r\n}',
        ),
        (
            '{"servers": {"A": {},/**/}/**/\n}',
            '{"servers": {"A": {},\n  "New": {\n    "command": "acp-proxy",\n'
            '    "args": ["run", "--", "agent"]\n  },/**/}/**/\n}',
        ),
    ],
)
def test_an_agent_stands_below_the_others(before: str, after: str) -> None:
    assert added(before, SHAPE, "New", "New", ["agent"]) == after


LISTED = """\
{
      "id": "New",
      "displayName": "My new one",
      "command": "acp-proxy",
      "args": ["run", "--", "agent"]
    }"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  "more": []\n}', f'{{\n  "more": [\n    {LISTED}\n  ]\n}}'),
        (
            '{\n  "more": [\n    {} // mine\n  ]\n}',
            f'{{\n  "more": [\n    {{}}, // mine\n    {LISTED}\n  ]\n}}',
        ),
        ('{\n  "theme": "One"\n}', f'{{\n  "theme": "One",\n  "more": [\n    {LISTED}\n  ]\n}}'),
    ],
)
def test_an_agent_of_a_list_is_its_last_item(before: str, after: str) -> None:
    assert added(before, Shape(more="more"), "New", "My new one", ["agent"]) == after
