"""Other people's clients, agents and checkers, each run twice: straight at an agent, and through acp-proxy."""
