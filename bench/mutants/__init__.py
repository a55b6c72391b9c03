"""Mutants of a module: small changes of its code, each of which some test should find."""
