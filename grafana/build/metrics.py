"""What the exporter offers: each family with its labels. A test holds it against a real scrape."""

from __future__ import annotations

import re
from collections.abc import Iterator

LABELS: dict[str, tuple[str, ...]] = {
    "acp_proxy_tokens_total": ("agent", "model", "team", "type", "source"),
    "acp_proxy_cost_total": ("agent", "model", "team", "currency", "source"),
    "acp_proxy_cost_not_billed_total": ("agent", "currency"),
    "acp_proxy_unpriced_tokens_total": ("agent", "model"),
    "acp_proxy_turns_total": ("agent", "team", "kind", "stop_reason"),
    "acp_proxy_turns_without_usage_total": ("agent",),
    "acp_proxy_sessions_total": ("agent", "client"),
    "acp_proxy_sessions_active": ("agent",),
    "acp_proxy_turn_cost": ("agent", "model", "currency"),
    "acp_proxy_turn_duration_seconds": ("agent",),
    "acp_proxy_context_used_ratio": ("agent", "model"),
    "acp_proxy_budget_info": ("budget", "mode", "window"),
    "acp_proxy_budget_limit": ("budget", "unit"),
    "acp_proxy_budget_granted": ("budget", "unit"),
    "acp_proxy_budget_spent": ("budget", "unit"),
    "acp_proxy_budget_held": ("budget", "unit"),
    "acp_proxy_budget_reset_timestamp_seconds": ("budget",),
    "acp_proxy_budget_decisions_total": ("budget", "decision"),
    "acp_proxy_budget_overshoot_total": ("budget", "unit"),
    "acp_proxy_plan_used_ratio": ("agent", "window"),
    "acp_proxy_plan_reset_timestamp_seconds": ("agent", "window"),
    "acp_proxy_capture_ratio": ("provider", "of"),
    "acp_proxy_capture_end_timestamp_seconds": ("provider",),
    "acp_proxy_coverage_ratio": ("agent",),
    "acp_proxy_notifications_total": ("channel", "result"),
    "acp_proxy_relay_messages_total": ("direction",),
    "acp_proxy_relay_bytes_total": ("direction",),
    "acp_proxy_relay_seconds": ("direction",),
    "acp_proxy_relay_errors_total": ("reason",),
    "acp_proxy_agent_exits_total": ("reason",),
    "acp_proxy_label_overflow_total": ("label",),
    "acp_proxy_ledger_up": (),
    "acp_proxy_ledger_pending_entries": (),
    "acp_proxy_ledger_replication_lag_seconds": ("role",),
    "acp_proxy_ledger_standbys": (),
    "acp_proxy_ledger_restored_rows_total": (),
    "acp_proxy_ledger_restores_incomplete_total": (),
    "acp_proxy_ledger_op_seconds": ("op",),
    "acp_proxy_catalog_timestamp_seconds": (),
    "acp_proxy_build_info": ("version", "python"),
}

# These have no series where the ledger is a file.
OF_SERVERS = frozenset({"acp_proxy_ledger_replication_lag_seconds", "acp_proxy_ledger_standbys"})

# The label `user` is there where `metrics.user_label` is set.
BY_USER = frozenset({"acp_proxy_tokens_total", "acp_proxy_cost_total", "acp_proxy_turns_total"})

HISTOGRAMS = frozenset(
    {
        "acp_proxy_turn_cost",
        "acp_proxy_turn_duration_seconds",
        "acp_proxy_context_used_ratio",
        "acp_proxy_relay_seconds",
        "acp_proxy_ledger_op_seconds",
    }
)


def family(series: str) -> str:
    """The family of a series: of `acp_proxy_turn_cost_bucket` it is `acp_proxy_turn_cost`."""
    stem = re.sub(r"_(bucket|sum|count)$", "", series)
    return stem if stem in HISTOGRAMS else series


def labels(name: str) -> tuple[str, ...]:
    """Labels that a family has or can have."""
    return (*LABELS[name], "user") if name in BY_USER else LABELS[name]


def families(expression: str) -> Iterator[str]:
    """The families that an expression asks for, each as often as it stands there."""
    return (family(name) for name in re.findall(r"\bacp_proxy_\w+", expression))
