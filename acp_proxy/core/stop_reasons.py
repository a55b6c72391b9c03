"""Why a turn ended, in ACP's words: those that ACP itself has, and ours where it has none."""

ENDED = "end_turn"  # where an agent gives no reason
CANCELLED = "cancelled"
FAILED = "error"  # v2's reason, and ours for a JSON-RPC error

LOST = frozenset({"crashed", "disconnected"})
"""Of turns that end without a line that ends them: a side is gone."""
