// Node's own pipes, no inspection.
import { spawn } from "node:child_process";
const command = process.argv.slice(process.argv.indexOf("--") + 1);
const agent = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
process.stdin.pipe(agent.stdin);
agent.stdout.pipe(process.stdout);
agent.on("exit", (code) => { process.exitCode = code ?? 1; process.stdin.destroy(); });
