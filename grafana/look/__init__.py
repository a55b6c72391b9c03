"""Pictures of the dashboards: a month of a team that does not exist, in a real Prometheus, drawn in a browser."""
