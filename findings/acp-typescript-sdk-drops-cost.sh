#!/usr/bin/env bash
# @agentclientprotocol/sdk 2.4.0 (the TypeScript SDK of ACP), as a client: a cost that it cannot read is no cost.
# Guess: an update is checked as a whole, as its counters are, or handed on as it came, as a response's usage is.
# Seen: `usage_update` with an amount that is text arrives without `cost`, and nothing is said; with `used` 5.5 it does
# not arrive at all; and the `usage` of a prompt's response is not checked: its counters may be texts.
source "$(dirname "$0")/common.sh"
install_npm @agentclientprotocol/sdk@2.4.0 zod@4.6.7
cat >ask.mjs <<'END_OF_CLIENT'
import { PassThrough, Readable, Writable } from "node:stream";
import readline from "node:readline";
import * as acp from "@agentclientprotocol/sdk";

const toAgent = new PassThrough();
const toClient = new PassThrough();
const say = (message) => toClient.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const usage = (used, amount) =>
  say({
    method: "session/update",
    params: { sessionId: "s", update: { sessionUpdate: "usage_update", used, size: 10, cost: { amount, currency: "USD" } } },
  });
readline.createInterface({ input: toAgent }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (method === "initialize") say({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
  if (method === "session/new") say({ id, result: { sessionId: "s" } });
  if (method !== "session/prompt") return;
  usage(5, 0.5);
  usage(6, "0.5");
  usage(6.5, 0.5);
  say({ id, result: { stopReason: "end_turn", usage: { inputTokens: "5" } } });
});
const seen = [];
const { agent, client } = acp.methods;
const app = acp.client({ name: "asks" }).onNotification(client.session.update, ({ params }) => {
  seen.push(`${params.update.used} ${params.update.cost?.amount ?? "no cost"}`);
});
const stream = acp.ndJsonStream(Writable.toWeb(toAgent), Readable.toWeb(toClient));
await app.connectWith(stream, async (peer) => {
  await peer.request(agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  await peer.request(agent.session.new, { cwd: "/", mcpServers: [] });
  const answer = await peer.request(agent.session.prompt, { sessionId: "s", prompt: [] });
  console.log(`${seen.join(", ")}; ${typeof answer.usage.inputTokens}`);
});
process.exit(0);
END_OF_CLIENT
expect 'updates that arrive, and the type of a counter' '5 0.5, 6 no cost; string' "$(node ask.mjs 2>said)"
expect 'lines about the amount' '0' "$(grep -c -i 'cost\|amount' said || true)"
