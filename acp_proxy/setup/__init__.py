"""`acp-proxy setup`: puts the agents in the settings of editors behind acp-proxy, and undoes that.

`settings_file` and `originals` are the only ones that write; `jsonc`, `edits`, `agents`, `wrapping`, `adding` and
`pasting` are pure.
"""

NAMES = ("zed", "vscode", "jetbrains", "codecompanion", "avante", "agentic", "agent-shell", "obsidian", "toad", "acpx")
"""The editors, for the command line: what is known of each is in `editors` and `pasting`."""
