"""How the price catalog is made; scripts/build-catalog runs it."""
