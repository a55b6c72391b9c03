"""Bytes into lines, and a first look at each: cheap enough for everything that passes. None of it ever raises."""
