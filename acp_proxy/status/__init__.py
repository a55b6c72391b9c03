"""One line for prompts and status bars: spend of today, what is left of a budget, the last turn."""
