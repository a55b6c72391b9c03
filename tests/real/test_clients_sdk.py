"""The official SDK at both ends: what each end gets is the same with acp-proxy between them, but for what it adds."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.client import PATIENT
from tests.real.clients import SDK_AGENT
from tests.real.runs import PROXY

if TYPE_CHECKING:
    from tests.real.clients.sdk_client import Talk

pytestmark = pytest.mark.xdist_group("sdk")  # both talks are held once

AGENT = [sys.executable, SDK_AGENT]


STOPPED = ["end_turn", "end_turn", "end_turn", "max_tokens", "max_turn_requests", "refusal"]
STOPPED += ["error", "cancelled", "end_turn"]


@dataclass(frozen=True, slots=True)
class Both:
    direct: Talk
    relayed: Talk
    rows: list[dict[str, Any]]  # of the ledger, in the order of the turns


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    from tests.real.clients.sdk_client import EverythingClient, everything, talk

    environment = {"HOME": str(tmp_path_factory.mktemp("home")), "PATH": os.environ["PATH"]}
    direct = asyncio.run(talk(AGENT, environment, everything, EverythingClient()))
    relayed = asyncio.run(talk([*PATIENT, "run", "--", *AGENT], environment, everything, EverythingClient()))
    command = [*PROXY, "report", "--by", "turn", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=30)
    rows = json.loads(done.stdout)["rows"]
    return Both(direct, relayed, sorted(rows, key=lambda row: row["key"]))  # which are in their order within 1 ms, too


def test_every_method_of_the_sdk_gives_the_same(both: Both) -> None:
    assert both.relayed.without_ours() == both.direct.got
    assert both.relayed.status == both.direct.status == [0]


def test_every_method_of_the_agent_was_called(both: Both) -> None:
    """Its own account of it is the last answer, so that what an agent gets is compared above, too."""
    from tests.real.clients.sdk_agent import EverythingAgent

    heard = {name for name, *_ in both.relayed.got[-1]["result"]["heard"] if isinstance(name, str)}
    methods = {name for name in vars(EverythingAgent) if not name.startswith("_")}
    assert heard == methods - {"on_connect"} | {"refused"}


def test_only_usage_updates_are_added_and_none_twice(both: Both) -> None:
    assert both.direct.ours() == []
    added = [message["params"] for message in both.relayed.ours()]
    assert {params["update"]["sessionUpdate"] for params in added} == {"usage_update"}
    assert len(added) == len({json.dumps(params, sort_keys=True) for params in added})


def test_each_turn_of_the_sdk_is_in_the_ledger(both: Both) -> None:
    assert [row["stop_reason"] for row in both.rows] == STOPPED
    assert [row["tokens"]["total"] for row in both.rows] == [*range(1300, 1294, -1), 0, 1294, 1293]
    assert {row["usage_source"] for row in both.rows if row["stop_reason"] == "cancelled"} == {"partial"}
    assert {row["client"] for row in both.rows} == {"everything-client"}
    assert {row["model"] for row in both.rows if row["stop_reason"] != "error"} == {"claude-haiku-4-5"}
