#!/usr/bin/env bash
# @agentclientprotocol/sdk 2.4.0 (the TypeScript SDK of ACP), as an agent: what an error says decides where it is said.
# Guess: an error that a handler throws is answered with its message in `data.details`, whatever it says.
# Seen: a message that happens to be JSON becomes `data` itself, as a provider's error body or "429" does: there
# `details` is missing, and `data` may be a number. Who looks for the reason of a refusal has to look at all of it.
source "$(dirname "$0")/common.sh"
install_npm @agentclientprotocol/sdk@2.4.0 zod@4.6.7
cat >ask.mjs <<'END_OF_AGENT'
import { PassThrough, Readable, Writable } from "node:stream";
import readline from "node:readline";
import * as acp from "@agentclientprotocol/sdk";

for (const message of ["too many requests", '{"type":"rate_limit_error"}', "429"]) {
  const toAgent = new PassThrough();
  const toClient = new PassThrough();
  const answered = new Promise((resolve) => readline.createInterface({ input: toClient }).on("line", resolve));
  acp
    .agent({ name: "fails" })
    .onRequest(acp.methods.agent.session.prompt, () => {
      throw new Error(message);
    })
    .connect(acp.ndJsonStream(Writable.toWeb(toClient), Readable.toWeb(toAgent)));
  const params = { sessionId: "s", prompt: [] };
  toAgent.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/prompt", params })}\n`);
  console.log(JSON.stringify(JSON.parse(await answered).error.data));
}
process.exit(0);
END_OF_AGENT
expect '`data` of three errors' '{"details":"too many requests"}
{"type":"rate_limit_error"}
429' "$(node ask.mjs 2>/dev/null)"
