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
