"""What concerns the process and the machine: starting the agent, directories, ids, decoders, and the system's errors.

Imports nothing of the rest, because the agent starts before anything else is loaded.
"""
