"""Released agents, run offline against a model server of our own. `scripts/real-agents` starts it; no test needs it."""
