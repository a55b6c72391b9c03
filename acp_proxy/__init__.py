"""A transparent relay for the Agent Client Protocol that meters what agents use.

Importing this package imports nothing else: `acp-proxy run` starts the agent before anything heavy is loaded.
"""

__version__ = "0.1.0"
