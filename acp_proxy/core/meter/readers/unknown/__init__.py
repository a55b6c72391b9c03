"""Reads agents that are not in the table: by what their calls can have sent, and by their contexts.

Nothing is said to be exact that can as well be something else.
"""
