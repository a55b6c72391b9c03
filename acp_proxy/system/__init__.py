"""Functions for the process and the machine: starting the agent, directories, ids, decoders, and the system's errors.

Imports no other package of acp-proxy, because the agent starts before anything else is loaded.
"""
