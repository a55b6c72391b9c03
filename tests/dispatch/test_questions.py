"""The one kind of request that is ours: its answer goes to nobody else, and all other lines pass as they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.acp.questions import form_line
from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import Request, Response
from acp_proxy.interceptor import Interceptor, Refusal
from tests.dispatch.interceptors import settled
from tests.ends import SESSION, Ends, answer, chunk, encoded, prompt, request

OTHER = "sess-2"
CANCEL = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": SESSION}}
DECLINED = {"action": "decline"}


class Asks(Interceptor):
    """Refuses each prompt, once the client has answered what it is asked about it, or it is waited for no more."""

    request_methods = frozenset({"session/prompt"})
    admit_timeout = inf

    def __init__(self) -> None:
        self.ends: Ends
        self.heard: list[Response | str] = []
        self.enough = asyncio.Event()

    async def admit(self, sender: Side, request: Request) -> Refusal:
        session = request.params["sessionId"]
        answered = self.ends.dispatcher.ask(request, lambda own: form_line(own, session, "More?", "More", {}))
        enough = asyncio.ensure_future(self.enough.wait())
        both: set[asyncio.Future[Any]] = {answered, enough}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        enough.cancel()
        if answered.cancelled():
            self.heard.append("taken back")
            return Refusal(result={"stopReason": "cancelled"})
        self.heard.append("nothing" if not answered.done() else answered.result() or "gone")
        return Refusal(result={"stopReason": "end_turn"})


def asking() -> tuple[Ends, Asks]:
    asks = Asks()
    ends = asks.ends = Ends([asks])
    ends.open_session()
    return ends, asks


def questions(ends: Ends) -> list[str]:
    """The ids of all that were asked."""
    return [each["id"] for each in ends.client.messages if each.get("method") == "elicitation/create"]


def answered(ends: Ends) -> dict[Any, Any]:
    return {each["id"]: each["result"] for each in ends.client.messages if "result" in each}


async def asked(id: int = 2) -> tuple[Ends, Asks, str]:
    ends, asks = asking()
    ends.client_says(prompt(id))
    await settled()
    (question,) = questions(ends)
    return ends, asks, question


async def test_the_answer_to_a_question_is_heard_and_reaches_the_agent_never() -> None:
    ends, asks, question = await asked()
    ends.client_says(answer(question, **DECLINED))
    await settled()
    assert asks.heard == [Response(question, DECLINED)]
    assert ends.agent.data == b""
    assert answered(ends) == {2: {"stopReason": "end_turn"}}


@pytest.mark.parametrize(
    "said",
    [
        {"jsonrpc": "2.0", "error": {"code": -32601, "message": "no such method"}},
        {"jsonrpc": "2.0", "error": None},
        {"jsonrpc": "2.0", "result": None},
        {"result": [1, {"action": "accept"}]},
        {"jsonrpc": "2.0", "result": {"action": {"accept": 7}, "content": "no object"}},
    ],
    ids=["an error", "no error", "null", "an array", "of other types"],
)
@pytest.mark.parametrize("times", [1, 3])
async def test_an_answer_that_is_none_is_consumed_like_any_other(said: dict[str, Any], times: int) -> None:
    ends, asks, question = await asked()
    ends.client_says(*[{**said, "id": question}] * times)
    await settled()
    assert [type(each) for each in asks.heard] == [Response]
    ends.client_says({**said, "id": question})
    assert ends.agent.data == b""
    assert list(answered(ends)) == [2]


async def test_an_answer_is_known_however_its_id_is_spelt_and_wherever_it_stands() -> None:
    ends, asks, question = await asked()
    spelt = "".join(f"\\u{ord(char):04x}" for char in question)
    long = "a reason " * 20_000
    ends.dispatcher.lines(
        Side.CLIENT, f'{{"result":{{"content":{{"reason":"{long}"}}}},"id" : "{spelt}" }}\r\n'.encode()
    )
    await settled()
    assert [type(each) for each in asks.heard] == [Response]
    assert ends.agent.data == b""


async def test_who_has_waited_long_enough_refuses_and_a_late_answer_is_consumed_too() -> None:
    ends, asks, question = await asked()
    asks.enough.set()
    await settled()
    assert asks.heard == ["nothing"]
    ends.client_says(CANCEL)
    ends.client_says(answer(question, action="accept", content={}), answer(question, **DECLINED))
    await settled()
    assert ends.agent.data == encoded(CANCEL)
    assert list(answered(ends)) == [2]


@pytest.mark.parametrize(
    "said",
    [
        CANCEL,
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 2}},
        request(9, "session/close", sessionId=SESSION),
        request(9, "session/delete", sessionId=SESSION),
    ],
    ids=lambda said: said["method"],
)
async def test_a_prompt_that_is_taken_back_waits_no_more_and_its_question_is_withdrawn(said: Any) -> None:
    ends, asks, question = await asked()
    ends.client_says(said)
    await settled()
    assert asks.heard == ["taken back"]
    assert ends.agent.data == encoded(said)
    withdrawn = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": question}}
    assert ends.client.messages[1:] == [withdrawn, answer(2, stopReason="cancelled")]
    ends.client_says(answer(question, action="cancel"))
    assert ends.agent.data == encoded(said)


async def test_who_takes_another_prompt_back_is_asked_on() -> None:
    ends, asks, _ = await asked()
    for each in (
        {**CANCEL, "params": {"sessionId": OTHER}},
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "2"}},
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {}},
    ):
        ends.client_says(each)
    await settled()
    assert asks.heard == []


async def test_a_prompt_that_was_taken_back_before_is_not_asked_about() -> None:
    ends, asks = asking()
    ends.client_says(prompt(2), CANCEL)
    await settled()
    assert asks.heard == ["taken back"]
    assert ends.client.messages == [answer(2, stopReason="cancelled")]
    assert ends.agent.data == encoded(CANCEL)


async def test_nothing_waits_behind_a_prompt_that_will_not_go() -> None:
    ends, _ = asking()
    mode = request(3, "session/set_mode", sessionId=SESSION, modeId="code")
    ends.client_says(prompt(2, text="an image" * 1_000_000), mode)
    assert ends.agent.data == b""
    await settled()
    assert ends.agent.data == encoded(mode)
    assert ends.agent.held_back == 0
    assert ends.dispatcher.holding() > 0
    later = request(4, "session/set_mode", sessionId=SESSION, modeId="ask")
    ends.client_says(later)
    assert ends.agent.data == encoded(mode, later)


async def test_the_id_of_a_prompt_that_is_asked_about_stays_its_own() -> None:
    ends, _, question = await asked()
    ends.client_says(prompt(2), request(2, "session/set_mode", sessionId=SESSION, modeId="code"))
    await settled()
    assert [each["error"]["code"] for each in ends.client.messages if "error" in each] == [-32600, -32600]
    ends.client_says(answer(question, **DECLINED))
    await settled()
    assert answered(ends) == {2: {"stopReason": "end_turn"}}
    ends.client_says(prompt(2))
    await settled()
    assert len(questions(ends)) == 2


@pytest.mark.parametrize("side", Side)
async def test_when_a_side_is_gone_nobody_waits_for_an_answer(side: Side) -> None:
    ends, asks, _ = await asked()
    ends.dispatcher.ended(side)
    await settled()
    assert asks.heard == ["gone"]
    assert list(answered(ends)) == ([2] if side is Side.CLIENT else [])


async def test_who_says_nothing_any_more_is_not_asked() -> None:
    ends, asks = asking()
    ends.client_says(prompt(2))
    ends.dispatcher.ended(Side.CLIENT)
    await settled()
    assert asks.heard == ["gone"]
    assert questions(ends) == []
    assert list(answered(ends)) == [2]


async def test_an_agent_that_knew_the_id_of_a_question_could_neither_answer_nor_change_it() -> None:
    """It cannot know it: its lines pass as any others."""
    ends, asks, question = await asked()
    said = [answer(question, action="accept", content={}), request(question, "fs/read_text_file", path="/x"), chunk()]
    before = ends.client.data
    ends.agent_says(*said)
    assert ends.client.data == before + encoded(*said)
    assert asks.heard == []


async def test_two_processes_ask_by_ids_of_their_own() -> None:
    (_, _, one), (_, _, other) = await asked(), await asked()
    assert one != other
    assert len(one) >= 32 + len("acp-proxy-")


_ids = iter(range(100, 10**9))
_reply = st.sampled_from(
    [
        {"result": {"action": "accept", "content": {"reason": "x", "amount": 5.5}}},
        {"result": DECLINED},
        {"result": {"outcome": {"outcome": "cancelled"}}},
        {"result": None},
        {"error": {"code": -32800, "message": "cancelled"}},
        {"error": "no object"},
    ]
)
_sessions = st.sampled_from([SESSION, OTHER])
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("prompt"), _sessions),
        st.tuples(st.just("reply"), st.tuples(st.integers(0, 5), _reply, st.integers(1, 2))),
        st.tuples(st.just("cancel"), _sessions),
        st.tuples(st.just("mode"), _sessions),
        st.tuples(st.just("answer"), st.sampled_from([7, "7", "acp-proxy", None])),
        st.tuples(st.just("words"), st.sampled_from([b"\n", b"{}\n", b'{"id":"acp-proxy-1"\n', b" [INFO] \r\n"])),
        st.tuples(
            st.just("agent"), st.sampled_from([chunk(), request(7, "fs/any"), answer(1), request("7", "fs/any")])
        ),
        st.tuples(st.just("enough"), st.none()),
    ),
    max_size=24,
)


class Script:
    """What is said in an arbitrary order, and what is then to have passed."""

    def __init__(self) -> None:
        self.ends, self.asks = asking()
        self.to_agent: list[bytes] = []
        self.to_client = b""
        self.prompts: list[int] = []

    def say(self, what: str, with_what: Any) -> None:
        match what, with_what:
            case "prompt", session:
                self.prompts.append(next(_ids))
                self.ends.client_says(prompt(self.prompts[-1], session=session))
            case "reply", (number, reply, times):
                if ids := questions(self.ends):
                    line = {"jsonrpc": "2.0", "id": ids[number % len(ids)], **reply}
                    self.ends.client_says(*[line] * times)
            case "agent", line:
                self.ends.agent_says(line)
                self.to_client += encoded(line)
            case "enough", _:
                self.asks.enough.set()
            case _:
                passes = encoded(*self._passes(what, with_what))
                self.ends.dispatcher.lines(Side.CLIENT, passes)
                self.to_agent.append(passes)

    def _passes(self, what: str, with_what: Any) -> Sequence[Any]:
        match what:
            case "cancel":
                return [{**CANCEL, "params": {"sessionId": with_what}}]
            case "mode":
                return [request(next(_ids), "session/set_mode", sessionId=with_what, modeId="x")]
            case "answer":
                return [answer(with_what, action="accept")]
        return [with_what]

    def of_agent(self) -> bytes:
        """What the client got, but for what is ours."""
        return b"".join(line for line in self.ends.client.data.splitlines(keepends=True) if not self._is_ours(line))

    def _is_ours(self, line: bytes) -> bool:
        message = json.loads(line)
        about = message.get("params", {}).get("requestId", message.get("id"))
        return about in self.prompts or str(about).startswith("acp-proxy-")

    def stop_reasons(self) -> Iterator[int]:
        for each in self.ends.client.messages:
            if each.get("id") in self.prompts and each["result"]["stopReason"] in ("end_turn", "cancelled"):
                yield each["id"]


@given(_steps, st.booleans())
def test_whatever_is_said_around_questions_passes_byte_for_byte_and_each_prompt_has_one_answer(
    steps: list[tuple[str, Any]], unhurried: bool
) -> None:
    async def told() -> Script:
        script = Script()
        for what, with_what in steps:
            script.say(what, with_what)
            if unhurried:
                await settled()
        await settled()
        script.ends.dispatcher.ended(Side.CLIENT)
        await settled()
        return script

    script = asyncio.run(told())
    assert script.of_agent() == script.to_client
    assert sorted(script.stop_reasons()) == script.prompts
    assert script.ends.dispatcher.holding() == script.ends.dispatcher.failures == 0
    passed = script.ends.agent.data
    if unhurried:
        assert passed == b"".join(script.to_agent)
    else:  # for a moment lines of a session wait behind its prompt
        assert sorted(passed.splitlines()) == sorted(b"".join(script.to_agent).splitlines())
