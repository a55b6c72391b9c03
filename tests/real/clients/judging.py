"""Judges a record by requirements of the protocol's conformance kit, under the kit's names where it has one.

A verdict is `pass`, `fail`, `skipped` (nothing to judge) or, where the kit only observes, what was seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.real.clients.conformance import UNSUPPORTED, Record

SCHEMA = str(Path(__file__).parents[2] / "schema/acp-v{}.schema.unstable.json")
REASONS = {"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
TURNS = ("prompt", "prompt with _meta", "image", "audio", "embeddedContext", "cancelled")
KNOWN = {"session/update", "session/request_permission", "elicitation/create", "$/cancel_request"}
Verdict = str


def judged(seen: Record, version: int) -> dict[str, Verdict]:
    return _of_both(seen, version) | (_of_version_1(seen) if version == 1 else _of_version_2(seen))


def _of_both(seen: Record, version: int) -> dict[str, Verdict]:
    opened, again = seen.result("new") or {}, seen.result("new again") or {}
    answers = [answer for answer in seen.answers.values() if answer]
    errors = [answer["error"] for answer in answers if "error" in answer]
    return {
        "INIT-001": _that("result" in seen.answers["initialize"]),
        "INIT-003": _that((seen.result("unsupported") or {}).get("protocolVersion", UNSUPPORTED) != UNSUPPORTED),
        "SCHEMA-001": _fits(version, "InitializeResponse", [seen.result("initialize")]),
        "SESSION-001": _fits(version, "NewSessionResponse", [opened]),
        "SESSION-002": _that(opened.get("sessionId") != again.get("sessionId")),
        "PROMPT-003": _that("result" in seen.answers["prompt"]),
        "PROMPTCAP-001": _accepted(seen, "image"),
        "PROMPTCAP-002": _accepted(seen, "audio"),
        "PROMPTCAP-003": _accepted(seen, "embeddedContext"),
        "META-001": _that("result" in seen.answers["prompt with _meta"]),
        "META-201": _that(all(_metas_are_objects(_message(line)) for line in seen.lines)),
        "CLIENTCAP-003": _that(not _asked(seen, "elicitation/")),
        "TRANSPORT-001": _that(all(isinstance(_message(line), dict | list) for line in seen.lines)),
        "TRANSPORT-002": _that(all(_is_text(line) for line in seen.lines)),
        "JSONRPC-001": _that(all(sent == back and type(sent) is type(back) for sent, back in seen.ids)),
        "JSONRPC-002": _that(all(("result" in answer) != ("error" in answer) for answer in answers)),
        "JSONRPC-003": _that(not _stray(seen, "after notifications") and not _stray(seen, "after cancelled")),
        "JSONRPC-004": _that(_code(seen, "unknown method") == -32601),
        "JSONRPC-005": _usable(seen, "batch"),
        "ERROR-001": _that(all(error["message"] and "\n" not in error["message"] for error in errors)),
        "EXT-001": _that(bool(seen.answers["custom method"])),
        "LIST-001": _fits(version, "ListSessionsResponse", [seen.result("list")]),
        "LIST-002": _seen(seen, "list elsewhere"),
        "RESUME-001": _seen(seen, "resume"),
        "(fork)": _seen(seen, "fork"),
        "ADDDIRS-001": _seen(seen, "elsewhere"),
        "CONFIG-002": _seen(seen, "option"),
        "CLOSE-001": _seen(seen, "close"),
        "DELETE-001": _seen(seen, "delete"),
        "DELETE-002": _seen(seen, "delete again"),
        "SHUTDOWN-001": f"seen: {seen.statuses}",
        "INFO-UNKNOWNSESSION-001": _seen(seen, "unknown session"),
        "INFO-PARSE-001": _between(seen, "not JSON"),
        "INFO-INVALIDREQ-001": _between(seen, "not a request"),
        "INFO-BATCH-201": _between(seen, "half a batch"),
        "BATCH-201": _between(seen, "empty batch"),
        "BATCH-202": _between(seen, "batch of notifications"),
        "BATCH-203": _between(seen, "batch"),
    }


def _of_version_1(seen: Record) -> dict[str, Verdict]:
    turns = [turn for turn in TURNS if "result" in seen.answers.get(turn, {})]
    return {
        "INIT-002": _that(seen.result("initialize")["protocolVersion"] == 1),
        "PROMPT-001": _that(all(seen.result(turn).get("stopReason") in REASONS for turn in turns)),
        "PROMPT-002": _fits(1, "SessionNotification", (said for turn in TURNS for said in seen.updates(turn))),
        "CANCEL-001": _that((seen.result("cancelled") or {}).get("stopReason") == "cancelled"),
        "CANCEL-002": f"seen: {_kinds(seen.updates('after cancelled'))}",
        "CLIENTCAP-001": _that(not _asked(seen, "fs/")),
        "CLIENTCAP-002": _that(not _asked(seen, "terminal/")),
        "LOAD-001": _seen(seen, "load"),
        "MODES-002": _seen(seen, "mode"),
    }


def _of_version_2(seen: Record) -> dict[str, Verdict]:
    turns = [turn for turn in TURNS if "result" in seen.answers.get(turn, {})]
    ids = [seen.result(turn).get("messageId") for turn in turns]
    states = {turn: [said["update"] for said in seen.updates(turn) if "state" in said["update"]] for turn in turns}
    idle = [said for turn in turns for said in states[turn] if said["state"] == "idle" and "stopReason" in said]
    return {
        "INIT-201": _that(seen.result("initialize")["protocolVersion"] == 2),
        "PROMPT-201": _that(all(isinstance(given, str) and given for given in ids)),
        "PROMPT-205": _fits(2, "UpdateSessionNotification", (said for turn in TURNS for said in seen.updates(turn))),
        "STATE-201": _that(all(states[turn] and states[turn][0]["state"] == "running" for turn in turns)),
        "STATE-202": _that(len(idle) == len(turns)),
        "STATE-203": _that(all(said["stopReason"] in REASONS or said["stopReason"][0] == "_" for said in idle)),
        "CANCEL-201": _that(bool(idle) and idle[-1]["stopReason"] == "cancelled"),
        "CANCEL-202": f"seen: {_kinds(seen.updates('after cancelled'))}",
        "CLIENTCAP-202": _that(all(name in KNOWN or name[0] == "_" for name in _methods(seen))),
        "PATCH-203": _that(len(ids) == len(set(ids))),
    }


def _that(holds: bool) -> Verdict:
    return "pass" if holds else "fail"


def _accepted(seen: Record, step: str) -> Verdict:
    return _that("result" in seen.answers[step]) if step in seen.answers else "skipped"


def _seen(seen: Record, step: str) -> Verdict:
    match seen.answers.get(step):
        case None:
            return "skipped"
        case {"result": _}:
            return "seen: a result"
        case {"error": {"code": code}}:
            return f"seen: error {code}"
    return "seen: nothing"


def _between(seen: Record, step: str) -> Verdict:
    """What came for a line that is no call, before the answer to the call after it."""
    came = [_shape(said) for said in seen.during[step] if "method" not in said]
    return f"seen: {came or 'nothing'}, then {'an answer' if seen.answers[step] else 'the end'}"


def _shape(said: Any) -> Any:
    match said:
        case {"batch": list(parts)}:
            return sorted(str(_shape(part)) for part in parts)
        case {"error": {"code": code}}:
            return [said.get("id"), code]
    return [said.get("id"), "result"]


def _usable(seen: Record, step: str) -> Verdict:
    return _that(bool(seen.answers[step]))


def _stray(seen: Record, step: str) -> bool:
    return any("method" not in said for said in seen.during[step])


def _code(seen: Record, step: str) -> Any:
    return seen.answers[step].get("error", {}).get("code")


def _fits(version: int, name: str, values: Iterable[Any]) -> Verdict:
    schema = json.loads(Path(SCHEMA.format(version)).read_text())
    validator = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})
    return _that(all(validator.is_valid(value) for value in values))


def _methods(seen: Record) -> set[str]:
    return {str(method) for line in seen.lines if (method := _field(line, "method"))}


def _asked(seen: Record, family: str) -> bool:
    return any(method.startswith(family) for method in _methods(seen))


def _kinds(updates: list[Any]) -> list[str]:
    """Those of the agent's own: what acp-proxy adds says so."""
    said = [params["update"] for params in updates]
    return sorted({update["sessionUpdate"] for update in said if "acp-proxy" not in (update.get("_meta") or {})})


def _field(line: bytes, name: str) -> Any:
    message = _message(line)
    return message.get(name) if isinstance(message, dict) else None


def _message(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _metas_are_objects(value: Any) -> bool:
    match value:
        case dict():
            meta = value.get("_meta")
            return isinstance(meta, dict | None) and all(_metas_are_objects(part) for part in value.values())
        case list():
            return all(_metas_are_objects(part) for part in value)
    return True
