"""How fast the relay is, against one in C as the limit and against others. `scripts/bench` starts it; Linux only."""
