#!/usr/bin/env bash
# agent-client-protocol 0.12.1 (the Python SDK of ACP): a client may see the chunks of an answer in another order.
# Guess: notifications are handled one after the other, as they came, because an answer is the chunks in their order.
# Seen: each runs in a task of its own. As soon as `session_update` waits for something, later ones overtake it.
source "$(dirname "$0")/common.sh"
install agent-client-protocol==0.12.1
cat >agent.py <<'END'
import json, sys

def say(**message):
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    for text in ("one", "two", "three"):
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        say(method="session/update", params={"sessionId": "s", "update": update})
    say(id=request["id"], result={"stopReason": "end_turn"})
END
cat >ask.py <<'END'
import asyncio, sys
from acp import spawn_agent_process, text_block

class Editor:
    def __init__(self):
        self.order, self.third = [], asyncio.Event()

    def on_connect(self, agent):
        pass

    async def session_update(self, session_id, update, **_):
        if update.content.text == "three":
            self.third.set()
        await asyncio.wait_for(self.third.wait(), 10)  # as a client does that draws the first chunk slowly
        if update.content.text == "one":
            await asyncio.sleep(0.1)
        self.order.append(update.content.text)

async def main():
    editor = Editor()
    async with spawn_agent_process(editor, sys.executable, "agent.py") as (agent, _):
        await agent.prompt(session_id="s", prompt=[text_block("Count.")])
        while len(editor.order) < 3:
            await asyncio.sleep(0.01)
    print(*editor.order)

asyncio.run(main())
END
expect 'the chunks one, two, three as a slow client sees them' 'two three one' "$(python ask.py)"
