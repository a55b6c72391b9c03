"""Schemathesis asks operations of the OpenAPI document as each role: a third of them, which is another one each time.

`CONTRACT_EXAMPLES=200` asks each of them so often.
"""

from __future__ import annotations

import os

EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "0"))


def test_a_hub_answers_everybody_as_its_document_says_whatever_is_asked(url: str) -> None:
    from tests.hub.api.contract import wrong_answers  # with Schemathesis, which no worker needs that only collects this

    assert list(wrong_answers(url, EXAMPLES or 3, share=1.0 if EXAMPLES else 1 / 3)) == []
