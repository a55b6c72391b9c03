"""Every key of the configuration, and what its value must be. Pure: reads no file and no environment.

`*` stands for a name that the user chooses. Keys below `budget` and `notify` are those of each
`[[budget]]` and `[[notify]]`.
"""

from __future__ import annotations

from acp_proxy.config.checks import (
    Check,
    address,
    amount,
    attributes,
    closest,
    count,
    currency,
    days,
    duration,
    flag,
    headers,
    hold,
    kinds,
    ledger_url,
    listed,
    names,
    one_of,
    path,
    patterns,
    percent,
    percents,
    port,
    price,
    provider_address,
    rate,
    reference,
    secret,
    signals,
    text,
    tokens,
    webhook,
    window,
    zone,
)

Key = tuple[str, ...]

PREFIX = "ACP_PROXY_"
HUB_TOKEN = "ACP_PROXY_HUB_TOKEN"  # noqa: S105  a secret for a hub, and no key: no value of it is ever shown
_LONGEST_NUMBER = 20  # digits
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")

KEYS: dict[str, Check] = {
    "identity.user": text,
    "identity.team": text,
    "identity.organisation": text,
    "identity.project": text,
    "run.agent": text,
    "run.summary": flag,
    "run.estimate": flag,
    "run.budget": amount,
    "log.file": path,
    "log.level": one_of("debug", "info", "warning", "error"),
    "ledger.url": ledger_url,
    "ledger.on_unavailable": one_of("open", "closed", "local", "lease"),
    "ledger.admission_timeout": duration,
    "ledger.titles": flag,
    "budget.name": text,
    "budget.scope.user": patterns,
    "budget.scope.team": patterns,
    "budget.scope.project": patterns,
    "budget.scope.agent": patterns,
    "budget.scope.model": patterns,
    "budget.per": one_of("user", "team", "project", "agent"),
    "budget.window": window,
    "budget.week_start": one_of("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "budget.timezone": zone,
    "budget.limit.amount": amount,
    "budget.limit.currency": currency,
    "budget.limit.tokens": count,
    "budget.limit.turns": count,
    "budget.limit.plan": text,
    "budget.limit.percent": percent,
    "budget.rates.*": rate,
    "budget.count_plans": flag,
    "budget.mode": one_of("shadow", "warn", "enforce"),
    "budget.thresholds": percents,
    "budget.on_exceed": one_of("finish_turn", "deny_next_tool", "cancel"),
    "budget.on_overage": one_of("allow", "deny"),
    "budget.on_unpriced": one_of("warn", "deny", "estimate"),
    "budget.on_unavailable": one_of("open", "closed", "local", "lease"),
    "budget.hold": hold,
    "refusal.style": one_of("message", "error"),
    "refusal.ask": one_of("form", "choice", "never"),
    "refusal.ask_timeout": duration,
    "notify.name": text,
    "notify.url": webhook,
    "notify.url_file": path,
    "notify.format": one_of("json", "slack", "teams", "discord"),
    "notify.on": kinds,
    "notify.budgets": patterns,
    "notify.secret": secret,
    "notify.secret_file": path,
    "pricing.cache_write": one_of("5m", "1h"),
    "prices.*.input": price,
    "prices.*.output": price,
    "prices.*.cached_read": price,
    "prices.*.cached_write": price,
    "prices.*.cached_write_1h": price,
    "prices.*.context": tokens,
    "aliases.*": text,
    "agents.*.scope": one_of("turn", "session", "last_call", "call"),
    "agents.*.input": one_of("excludes_cache", "includes_cache"),
    "billing.*.by": one_of("plan", "tokens"),
    "billing.*.seat": amount,
    "billing.*.currency": currency,
    "serve.host": text,
    "serve.port": port,
    "serve.token_file": path,
    "serve.allowed_hosts": names,
    "metrics.user_label": flag,
    "metrics.project_label": flag,
    "otlp.endpoint": address,
    "otlp.metrics_endpoint": address,
    "otlp.traces_endpoint": address,
    "otlp.logs_endpoint": address,
    "otlp.headers": headers,
    "otlp.headers_file": path,
    "otlp.protocol": one_of("http/protobuf"),
    "otlp.timeout": duration,
    "otlp.compression": one_of("gzip", "none"),
    "otlp.certificate": path,
    "otlp.client_certificate": path,
    "otlp.client_key": path,
    "otlp.signals": signals,
    "otlp.interval": duration,
    "otlp.temporality": one_of("cumulative", "delta"),
    "otlp.service_name": text,
    "otlp.resource_attributes": attributes,
    "otlp.gen_ai": flag,
    "otlp.token_histogram": flag,
    "bills.*.key": reference,
    "bills.*.url": provider_address,
    "bills.*.days": days,
    "books.complete": flag,
    "plans.thresholds": percents,
    "plans.in_editor": flag,
    "share_titles": flag,
}


def check_of(key: Key) -> Check | None:
    """The check of a complete key, None when there is no such key."""
    return KEYS.get(".".join(pattern_of(key)))


def pattern_of(key: Key) -> Key:
    """The key with `*` for the part that the user chose."""
    match key:
        case ("prices" | "aliases" | "agents" | "billing" as table, _, *rest):
            return (table, "*", *rest)
        case ("bills", "anthropic" | "openai" | "litellm", *rest):  # no others have an API that is asked
            return ("bills", "*", *rest)
        case ("budget", "rates", _):
            return ("budget", "rates", "*")
    return key


def children(key: Key) -> list[str]:
    """The keys of the table `key`: names, or `*` for any. Empty if it is no table."""
    start = ".".join((*pattern_of(key), "")) if key else ""
    return list(dict.fromkeys(known[len(start) :].partition(".")[0] for known in KEYS if known.startswith(start)))


def of_text(check: Check, value: str) -> object:
    """A value from the environment, in the type that the check takes."""
    if check is flag and value.lower() in _TRUE + _FALSE:
        return value.lower() in _TRUE
    if check in (tokens, port, days) and value.isascii() and value.isdigit() and len(value) < _LONGEST_NUMBER:
        return int(value)
    if check is percents and all(part.strip().isdigit() and len(part) < _LONGEST_NUMBER for part in value.split(",")):
        return [int(part) for part in value.split(",")]
    return value.split(",") if check in (names, signals) else value


def unknown(key: Key) -> str:
    """The error for a key that does not exist, with a suggestion."""
    table, name = key[:-1], key[-1]
    while table and not children(table):  # of the environment: a file has no key below one that is none
        table, name = table[:-1], table[-1]
    if table == ("bills",):
        return "unknown key; [bills] has anthropic, openai and litellm"
    around = {child: (*table, child) for child in children(table) if child != "*"}
    elsewhere: dict[str, Key] = {}
    if "*" not in pattern_of(table):  # what a model's price lacks, such as a currency, is not meant for a budget
        elsewhere = {known.rpartition(".")[2]: tuple(known.split(".")) for known in reversed(KEYS) if "*" not in known}
    if meant := around.get(closest(name, around)) or elsewhere.get(name):
        return f"unknown key; did you mean {dotted(meant)}?"
    if not around:
        return "unknown key"
    return f"unknown key; {f'[{dotted(table)}] has' if table else 'known are'} {listed(around, 'and')}"


def variable_meant(variable: str) -> str:
    """The variable of the environment that looks like one that is no key's; empty where none does."""
    plain = (known for known in KEYS if "*" not in known and not known.startswith(("budget.", "notify.")))
    known = [each.replace(".", "__").upper() for each in plain]
    name = variable.removeprefix(PREFIX).upper()
    meant = next((each for each in known if each.endswith(f"__{name}")), "") or closest(name, known)
    return f"{PREFIX}{meant}" if meant else ""


def dotted(key: Key) -> str:
    """The key as TOML writes it, parts quoted where they need it; always one line."""
    return ".".join(part if _is_bare(part) else quoted(part) for part in key)


def quoted(text: str) -> str:
    """A string as TOML writes it, on one line, with whatever cannot be printed escaped."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    if sign.isprintable():
        return sign
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}"


def _is_bare(part: str) -> bool:
    return part.isascii() and part.replace("-", "").replace("_", "").isalnum()
