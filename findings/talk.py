"""For findings about agents: a model server on loopback whose answers the finding writes, and a client of ACP."""

import json
import os
import subprocess
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


class ModelServer(ThreadingHTTPServer):
    """Streams the events that `answer` makes of a request's body, a dict of them as plain JSON; keeps the bodies."""

    def __init__(self, answer: Callable[[dict], list | dict]) -> None:
        super().__init__(("127.0.0.1", 0), Model)
        self.answer = answer
        self.asked: list[dict] = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        Thread(target=self.serve_forever, daemon=True).start()


class Model(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        answer = self.server.answer(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if isinstance(answer, dict) else "text/event-stream")
        self.end_headers()
        if isinstance(answer, dict):
            self.wfile.write(json.dumps(answer).encode())
            return
        for event in answer:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        pass


class Agent:
    """An agent with a home of its own, `home`; what it said is in `said`."""

    def __init__(self, *command: str, env: dict[str, str], files: dict[str, str] | None = None) -> None:
        self.home = Path("home").resolve()
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        for name, text in (files or {}).items():
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text)
        command = tuple(str(Path(word).resolve()) if word.startswith("node_modules/") else word for word in command)
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "NO_COLOR": "1", **env}
        self.process = subprocess.Popen(
            command, env=env, cwd=self.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.said: list[dict] = []
        self.ask("initialize", protocolVersion=1, clientCapabilities={})
        self.session = self.ask("session/new", cwd=str(self.project), mcpServers=[])["sessionId"]

    def prompt(self, text: str) -> dict:
        return self.ask("session/prompt", sessionId=self.session, prompt=[{"type": "text", "text": text}])

    def ask(self, method: str, **params: object) -> dict:
        self.send({"id": method, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == method and "method" not in message:
                return message["result"]
            if "id" in message:  # a question of the agent, which this client cannot answer
                self.send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict:
        line = self.process.stdout.readline()
        self.said.append(json.loads(line) | {"bytes": len(line)})
        return self.said[-1]

    def updates(self, kind: str) -> list[dict]:
        updates = [message["params"]["update"] for message in self.said if message.get("method") == "session/update"]
        return [update for update in updates if update["sessionUpdate"] == kind]

    def end(self) -> None:
        """Lets the agent go by itself: a launcher that gets a signal may leave children behind, which still write."""
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
