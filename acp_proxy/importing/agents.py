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
TELL_PLANS = ("codex",)  # of which they have the windows of the user's plan: `plans` reads these
