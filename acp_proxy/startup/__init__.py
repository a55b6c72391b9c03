"""From the command line to the agent's process: what runs before anything heavy is imported."""
