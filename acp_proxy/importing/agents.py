"""The agents whose session files can be imported, for the command line: `shelves` reads them."""

AGENTS = (
    "claude-code",
    "codex",
    "gemini-cli",
    "qwen-code",
    "opencode",
    "kilo",
    "goose",
    "cline",
    "copilot",
    "kimi",
    "openclaw",
    "pi",
)
