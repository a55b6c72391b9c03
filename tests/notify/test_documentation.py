"""docs/notifications.md names what there is: kinds, results, what JSON holds, and the numbers of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

from acp_proxy.core.notice import KINDS
from acp_proxy.ledger.notices import RESULTS
from acp_proxy.notify.delivery import MOST_TRIES
from acp_proxy.notify.formats import body
from tests.notify.house import notice

PAGE = (Path(__file__).parents[2] / "docs/notifications.md").read_text(encoding="utf-8")


def test_every_kind_has_its_row() -> None:
    table = PAGE.partition("## Events")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \| ", table, re.MULTILINE)) == ("on", *KINDS)


def test_the_example_of_json_has_the_keys_of_what_is_sent_in_their_order() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert list(json.loads(example)) == list(json.loads(body(notice(), "json")))


def test_every_result_is_explained() -> None:
    (sentence,) = re.findall(r"counts attempts: (.*?)\. ", PAGE)
    assert tuple(re.findall(r"`(\w+)`", sentence)) == RESULTS


def test_the_pauses_are_as_many_as_there_are_tries_after_the_first() -> None:
    (pauses,) = re.findall(r"after 30 s, (.*?) min", PAGE)
    assert 1 + len(re.findall(r"\d+", pauses)) == MOST_TRIES - 1
