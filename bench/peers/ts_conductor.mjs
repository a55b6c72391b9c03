// @thinkwell/conductor with one agent and no proxies. First argument: the node_modules that it is in.
import { createInterface } from "node:readline";
const { Conductor, fromConnectors, StdioConnector } = await import(`${process.argv[2]}/@thinkwell/conductor/dist/index.js`);
const command = process.argv.slice(process.argv.indexOf("--") + 1);
const client = {
  async connect() {
    return {
      send: (message) => { process.stdout.write(JSON.stringify(message) + "\n"); },
      messages: (async function* () {
        for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity }))
          if (line.trim()) yield JSON.parse(line);
      })(),
      close: async () => {},
    };
  },
};
const agent = new StdioConnector({ command: command[0], args: command.slice(1) });
const conductor = new Conductor({ instantiator: fromConnectors(agent), mcpBridgeMode: "disabled" });
await conductor.connect(client);
process.exit(0);
