"""The features that come with acp-proxy, one room each; none imports another, and `wiring.py` sets their order."""
