"""The configuration as values. None means not set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from acp_proxy.config.layers import Settings

if TYPE_CHECKING:
    from acp_proxy.config.channels import Channel, Secret
    from acp_proxy.core.budget import Budget
    from acp_proxy.core.budget.plan_limits import PlanBudget


class Identity(Struct, frozen=True):
    """Who pays. `project` is None if `project.project_of` is to find it."""

    user: str
    team: str | None = None
    organisation: str = "default"
    project: str | None = None


class Run(Struct, frozen=True):
    agent: str | None = None  # in place of the name that the agent reports
    summary: bool = True
    estimate: bool = True  # characters / 4 for agents that report nothing
    budget: int | None = None  # nano US dollars over all sessions of this process; also in `Config.budgets`


class Log(Struct, frozen=True):
    file: Path | None = None
    level: Literal["debug", "info", "warning", "error"] = "warning"


class LedgerChoice(Struct, frozen=True):
    url: str  # with an absolute path: a journal names the ledger that it was written for
    on_unavailable: Literal["open", "closed", "local", "lease"] = "local"  # with a hub it is "lease"
    admission_timeout: float = 0.25  # seconds
    titles: bool = (
        True  # of sessions, which may repeat words of a prompt; false keeps none, whatever `share_titles` says
    )


class Price(Struct, frozen=True):
    """US dollars per million tokens as decimal text, `context` in tokens. None is unknown."""

    input: str | None = None
    output: str | None = None
    cached_read: str | None = None
    cached_write: str | None = None
    cached_write_1h: str | None = None
    context: int | None = None


class Pricing(Struct, frozen=True):
    cache_write: Literal["5m", "1h"] = "5m"
    prices: Mapping[str, Price] = field(default_factory=dict)


class AgentCounts(Struct, frozen=True):
    """How an agent counts; None where the user did not say."""

    scope: Literal["turn", "session", "last_call", "call"] | None = None
    input: Literal["excludes_cache", "includes_cache"] | None = None


class BilledBy(Struct, frozen=True):
    """How an agent is billed. `seat` is what one costs a month, in nano-units of the currency."""

    by: Literal["plan", "tokens"] | None = None
    seat: int | None = None
    currency: str = "USD"


class Serve(Struct, frozen=True):
    """The address of `acp-proxy serve`. `allowed_hosts` are further names by which clients may reach it."""

    host: str = "127.0.0.1"
    port: int = 9464  # 0 is any that is free
    token_file: Path | None = None
    allowed_hosts: tuple[str, ...] = ()


class Metrics(Struct, frozen=True):
    """Labels that metrics have only when they are wanted."""

    user_label: bool = False
    project_label: bool = False


class Otlp(Struct, frozen=True):
    """Where `serve` sends OpenTelemetry to. What is None is up to the variables `OTEL_*`, and then has a default."""

    endpoint: str | None = None
    metrics_endpoint: str | None = None
    traces_endpoint: str | None = None
    logs_endpoint: str | None = None
    headers: Secret | None = None
    headers_file: Path | None = None
    protocol: Literal["http/protobuf"] | None = None
    timeout: float | None = None  # seconds
    compression: Literal["gzip", "none"] | None = None
    certificate: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    signals: tuple[Literal["metrics", "traces", "logs"], ...] | None = None
    interval: float | None = None  # seconds
    temporality: Literal["cumulative", "delta"] | None = None
    service_name: str | None = None
    resource_attributes: str | None = None  # NAME=VALUE,…
    gen_ai: bool | None = None
    token_histogram: bool | None = None

    def __repr__(self) -> str:
        return f"Otlp(signals={self.signals!r})"


class BillSource(Struct, frozen=True):
    """A provider that is asked for its bill each day. `key` says where the key stands, and is never the key itself."""

    key: str | None = None  # `${NAME}` or `${file:PATH}`
    url: str | None = None  # None: that of the provider
    days: int = 30  # before today


class Books(Struct, frozen=True):
    """Whether relayed turns that are known in part are completed from what their agents recorded."""

    complete: bool = True


class Plans(Struct, frozen=True):
    """At how many percent of a plan's window its user is told, and whether in the editor or only by webhooks."""

    thresholds: tuple[int, ...] = (75, 90, 95)  # `core.plans.THRESHOLDS`, which no start of a command waits for
    in_editor: bool = True


class Refusing(Struct, frozen=True):
    """How a prompt is refused, and whether its user is asked in the editor to ask for more, where a hub takes that."""

    style: Literal["message", "error"] = "message"
    ask: Literal["form", "choice", "never"] = "form"
    ask_timeout: float = 120.0  # seconds that such a prompt waits for its user


class Config(Struct, frozen=True):
    identity: Identity
    run: Run
    log: Log
    ledger: LedgerChoice
    pricing: Pricing
    aliases: Mapping[str, str]
    agents: Mapping[str, AgentCounts]
    serve: Serve
    metrics: Metrics
    otlp: Otlp
    books: Books
    share_titles: bool
    budgets: tuple[Budget, ...]  # the administrator's, the user's, the flag's
    channels: tuple[Channel, ...]  # for notices: the administrator's, the user's
    refusal: Refusing
    files: tuple[Path, ...]  # that were read, the administrator's last
    final: frozenset[str]  # keys that the administrator set
    by_file: Mapping[Literal["admin", "user"], Settings]  # what each file sets, but for its arrays of tables
    overruled: tuple[str, ...]  # keys that were set, and do not count for what the administrator set
    billing: Mapping[str, BilledBy] = field(default_factory=dict)  # by the agent's name, or a pattern of it
    plans: Plans = Plans()
    bills: Mapping[str, BillSource] = field(default_factory=dict)  # by provider
    plan_budgets: tuple[PlanBudget, ...] = ()  # the administrator's, the user's
