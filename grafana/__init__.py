"""Grafana dashboards as code, and what it takes to look at them. Not part of the installed package."""
