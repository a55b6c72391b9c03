"""A proxy for a chain of `@thinkwell/conductor` that changes nothing: what its predecessor says it wraps, and back."""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

REQUEST, NOTIFICATION = "_proxy/successor/request", "_proxy/successor/notification"


def main() -> None:
    numbers = itertools.count(1)
    asked: dict[int, tuple[Any, bool]] = {}  # by the id under which it went on: whose question it was, if `initialize`
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params")
        if method is None:
            question, initialize = asked.pop(message["id"])
            answer = {name: message[name] for name in ("result", "error") if name in message}
            if initialize:  # the conductor wants to hear that this is a proxy
                answer["result"]["_meta"] = {**answer["result"].get("_meta", {}), "proxy": True}
            say(id=question, **answer)
            continue
        if method in (REQUEST, NOTIFICATION):
            passed = dict(params)
        else:
            if method == "initialize":
                del params["_meta"]["proxy"]  # which the conductor told this proxy alone
            passed = {"method": REQUEST if "id" in message else NOTIFICATION, "params": {"method": method}}
            if params is not None:
                passed["params"]["params"] = params
        if "id" in message:
            passed["id"] = next(numbers)
            asked[passed["id"]] = message["id"], method == "initialize"
        say(**passed)


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
