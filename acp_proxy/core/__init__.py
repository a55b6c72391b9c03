"""The sans-IO core: bytes and messages in, events and effects out.

Imports itself only; no clock, no environment, no I/O.
"""
