"""Bytes into lines, and a first look at each: cheap enough for everything that passes.

No byte makes it raise, but for `peek.decode_run` and `peek.decode_envelopes`, which say so.
"""
