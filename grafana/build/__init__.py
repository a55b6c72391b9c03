"""The dashboards of `grafana/dashboards`, from code: `python -m grafana.build` writes them. Asks no server."""
