"""What the model on loopback answers, and the tokens it says that it used: the ground truth of a run.

A word in the last user text steers it: `TOOL:shell`, `TOOL:read` or `TOOL:write`, with `*N` for N rounds of one tool
call before the text; `SLOW` streams five seconds; `THINK` thinks before the text; anything else gets a short text.
The n-th call of a server used `tokens(n)`.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ACTION = re.compile(r"\b(TOOL|SLOW|THINK)\b(?::([a-z]+))?(?:\*(\d+))?")
REMINDER = re.compile(r"<(system-reminder|environment_context|session_context)>.*?</\1>", re.DOTALL)
SHELL_COMMAND = "echo hi | tee shell.txt"

# The names that agents give to their tools, by what the tool does.
TOOL_NAMES = {
    "shell": (
        "Bash",
        "run_shell_command",
        "exec_command",
        "shell_command",
        "shell",
        "bash",
        "developer__shell",
        "exec",
    ),
    "read": ("Read", "read_file", "read", "view", "exec_command", "text_editor", "exec", "shell"),
    "write": ("Write", "write_file", "write", "create_file", "apply_patch", "text_editor", "exec"),
}


@dataclass(frozen=True, slots=True)
class Tokens:
    """Disjoint."""

    input: int = 0
    cached_read: int = 0
    cached_write: int = 0
    output: int = 0  # without thought
    thought: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.cached_read + other.cached_read,
            self.cached_write + other.cached_write,
            self.output + other.output,
            self.thought + other.thought,
        )

    @property
    def prompt(self) -> int:
        return self.input + self.cached_read + self.cached_write

    @property
    def completion(self) -> int:
        return self.output + self.thought

    @property
    def total(self) -> int:
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    schema: dict[str, Any]
    freeform: bool = False  # its input is plain text


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a completion, in a form common to all APIs."""

    model: str
    stream: bool
    prompt: str  # the last user text, without the agent's own reminders
    rounds: int  # the assistant's messages with tool calls since that text
    tools: list[Tool]
    schema: dict[str, Any] | None = None  # of the JSON that is asked for
    usage_in_stream: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    number: int
    tokens: Tokens
    chunks: list[str]
    delay: float = 0.0  # seconds before each chunk
    thinking: str = ""
    tool: Tool | None = None
    tool_input: Any = None  # an object, or text for a freeform tool

    @property
    def text(self) -> str:
        return "".join(self.chunks)


@dataclass(slots=True)
class Call:
    """A call as it was really served."""

    prompt: str
    model: str
    kind: Literal["main", "side"]  # side: what the agent asks on its own (titles, routing, checks)
    tokens: Tokens
    finished: bool = False  # False when the agent hung up before the end


@dataclass(slots=True)
class Model:
    directory: Path  # where the tools that it calls read and write
    prompts: list[str] = field(default_factory=list)  # the client's own, so that side calls are told apart
    calls: list[Call] = field(default_factory=list)
    limits: dict[str, str] = field(default_factory=dict)  # headers that tell of a plan
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, ask: Ask, *, cache_writes: bool, thoughts: bool) -> tuple[Call, Answer]:
        """Each API says whether it can tell cache writes and thoughts apart."""
        with self._lock:
            number = len(self.calls) + 1
            kind: Literal["main", "side"] = "main" if self._is_of_the_client(ask) else "side"
            call = Call(ask.prompt, ask.model, kind, _tokens(number, cache_writes, thoughts))
            self.calls.append(call)
        return call, self._answer(ask, number, call)

    def _is_of_the_client(self, ask: Ask) -> bool:
        return bool(ask.tools) and any(ask.prompt.startswith(prompt) for prompt in self.prompts)

    def _answer(self, ask: Ask, number: int, call: Call) -> Answer:
        text = f"Hello from the model. (call {number})"
        found = ACTION.findall(ask.prompt) if call.kind == "main" else []
        action, kind, times = found[-1] if found else ("", "", "")
        if ask.schema is not None:
            return Answer(number, call.tokens, [json.dumps(_example(ask.schema))])
        match action:
            case "TOOL" if ask.rounds < int(times or 1) and (tool := _pick(kind, ask.tools)):
                chunks, tool_input = ["I will use ", "a tool. "], self._input(kind, tool, number)
                return Answer(number, call.tokens, chunks, tool=tool, tool_input=tool_input)
            case "SLOW":
                return Answer(number, call.tokens, [f"slow {second} " for second in range(25)], delay=0.2)
            case "THINK":
                return Answer(number, call.tokens, [text], thinking="Let me think about it.")
        return Answer(number, call.tokens, [text[at : at + 16] for at in range(0, len(text), 16)])

    def _input(self, kind: str, tool: Tool, number: int) -> Any:
        patch = f"*** Begin Patch\n*** Add File: written{number}.txt\n+written\n*** End Patch\n"
        if tool.freeform:
            return _code_mode(kind, patch) if tool.name == "exec" else patch
        target = str(self.directory / ("notes.txt" if kind == "read" else "written.txt"))
        command = "cat notes.txt" if kind == "read" else SHELL_COMMAND
        known: dict[str, Any] = dict.fromkeys(("command", "cmd", "script"), command)
        known |= dict.fromkeys(("file_path", "absolute_path", "filePath", "path"), target)
        known |= dict.fromkeys(("content", "file_text"), "written\n")
        if tool.name == "text_editor":
            known["command"] = "view" if kind == "read" else "write"
        properties: dict[str, Any] = tool.schema.get("properties", {})
        wanted = set(tool.schema.get("required", [])) | {"command", "cmd", "file_path", "path", "content", "file_text"}
        return {name: known.get(name, _example(what)) for name, what in properties.items() if name in wanted}


def _tokens(number: int, cache_writes: bool, thoughts: bool) -> Tokens:
    thought = 50 + number if thoughts else 0
    written = 300 + number if cache_writes else 0
    return Tokens(1000 + 100 * number, 5000 + 10 * number, written, 200 + number - thought, thought)


def _pick(kind: str, tools: list[Tool]) -> Tool | None:
    by_name = {tool.name: tool for tool in tools}
    names = [name for name in TOOL_NAMES[kind or "shell"] if name in by_name]
    return by_name[names[0]] if names else None


def _code_mode(kind: str, patch: str) -> str:
    """Codex offers one tool that runs JavaScript, in which the others are functions."""
    escalated = {"cmd": SHELL_COMMAND, "sandbox_permissions": "require_escalated", "justification": "May I?"}
    match kind:
        case "write":
            return f"text(await tools.apply_patch({json.dumps(patch)}))"
        case "read":
            return f"text(await tools.exec_command({json.dumps({'cmd': 'cat notes.txt'})}))"
    return f"text(await tools.exec_command({json.dumps(escalated)}))"


def _example(schema: dict[str, Any]) -> Any:
    """A small value that fits a JSON schema well enough."""
    match schema:
        case {"default": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [first, *_]} | {"oneOf": [first, *_]}:
            return _example(first)
        case {"type": [kind, *_]}:
            return _example(schema | {"type": kind})
    properties = schema.get("properties", {})
    kind = str(schema.get("type", "string")).lower()
    if kind == "object":
        return {name: _example(properties.get(name, {})) for name in schema.get("required") or properties}
    return {"array": [], "boolean": False, "integer": 1, "number": 1}.get(kind, "text")


def user_text(blocks: list[str]) -> str:
    """The last block that still has text when the agent's own reminders are cut out."""
    for block in reversed(blocks):
        if text := REMINDER.sub("", block).strip():
            return text
    return ""
