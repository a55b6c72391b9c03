// A conductor on stdin and stdout: `node conductor.mjs NODE_MODULES PROXY... AGENT`, each command in one argument.
import { createInterface } from "node:readline";
const [modules, ...commands] = process.argv.slice(2);
const { Conductor, fromCommands } = await import(`${modules}/@thinkwell/conductor/dist/index.js`);
async function* messages() {
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) yield JSON.parse(line);
}
const client = {
  connect: async () => ({
    send: (message) => process.stdout.write(JSON.stringify(message) + "\n"),
    messages: messages(),
    close: async () => {},
  }),
};
const conductor = new Conductor({ instantiator: fromCommands(commands), mcpBridgeMode: "disabled" });
await conductor.connect(client);
await conductor.shutdown();
process.exit(0);
