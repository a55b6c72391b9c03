"""By which names and ids the dashboards are known; the same in every Grafana, so that links and bookmarks hold."""

from __future__ import annotations

TAG = "acp-proxy"

UIDS = {
    "Fleet": "acp-proxy-fleet",
    "Team chargeback": "acp-proxy-chargeback",
    "Sessions and cost": "acp-proxy-sessions",
    "Budgets": "acp-proxy-budgets",
    "Proxy health": "acp-proxy-health",
}
OF_ITS_OWN_TIME = "Team chargeback"  # a month, wherever one comes from
