"""What `acp-proxy setup` does: agents in the settings of editors, put behind acp-proxy and out again.

`jsonc` and `wrapping` are pure, `settings_file` is the only one that writes.
"""
