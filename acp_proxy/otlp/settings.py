"""Where OTLP is sent, and how: `[otlp]` of the configuration under the standard variables `OTEL_*`.

The administrator's keys win over those variables, and so do variables of our own, `ACP_PROXY_OTLP__…`. No header is
ever shown: they hold keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from acp_proxy import __version__
from acp_proxy.config import Config, ConfigError
from acp_proxy.config.channels import Secret
from acp_proxy.config.checks import address, assignments, attributes, headers, suggestion
from acp_proxy.config.values import Otlp
from acp_proxy.system.errors import reason_of

Signal = Literal["metrics", "traces", "logs"]
SIGNALS: tuple[Signal, ...] = ("metrics", "traces", "logs")
OPT_IN = "gen_ai_latest_experimental"

_TIMEOUT = 10.0  # seconds, as the specification has it
_INTERVAL = 60.0
_LARGEST = 16_384  # bytes of a file with headers
_LONGEST_NUMBER = 9  # digits of milliseconds


class Target(Struct, frozen=True):
    """Where one signal goes."""

    signal: Signal
    url: str
    headers: Mapping[str, str]
    timeout: float  # seconds for one attempt
    gzip: bool
    certificate: str | None = None  # files, in PEM
    client_certificate: str | None = None
    client_key: str | None = None

    def __repr__(self) -> str:
        return f"Target({self.signal!r}, {self.host!r})"

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


class OtlpSettings(Struct, frozen=True):
    targets: tuple[Target, ...]  # at least one; of the signals that are wanted
    resource: Mapping[str, str]  # without the instance, which the ledger keeps
    interval: float = _INTERVAL  # seconds between two exports of metrics
    delta: bool = False
    gen_ai: bool = False
    token_histogram: bool = False


def settings_of(config: Config, environ: Mapping[str, str]) -> OtlpSettings | None:
    """None where nothing says where to. Raises ConfigError with one line for what cannot be used."""
    said = _Said(config, environ)
    if said.variable("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    wanted = [signal for signal in SIGNALS if _is_wanted(said, signal)]
    targets = [target for signal in wanted if (target := _target(said, signal))]
    if not targets:
        return None
    opted = {each.strip() for each in said.variable("OTEL_SEMCONV_STABILITY_OPT_IN", "").split(",")}
    return OtlpSettings(
        targets=tuple(targets),
        resource=_resource(said),
        interval=said.either("interval", ("OTEL_METRIC_EXPORT_INTERVAL",), _milliseconds, _INTERVAL),
        delta=said.either("temporality", ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",), _temporality, "")
        == "delta",
        gen_ai=OPT_IN in opted or bool(config.otlp.gen_ai),
        token_histogram=bool(config.otlp.token_histogram),
    )


class _Said:
    """What configuration and environment say of one key."""

    def __init__(self, config: Config, environ: Mapping[str, str]) -> None:
        self._config = config
        self._environ = environ

    def variable(self, name: str, otherwise: str) -> str:
        """An empty variable counts as not set."""
        return self._environ.get(name) or otherwise

    def either(self, key: str, variables: tuple[str, ...], read: Callable[[str], Any], otherwise: Any) -> Any:
        """The first variable that is set, unless the administrator or a variable of our own sets the key."""
        own = getattr(self._config.otlp, key)
        is_final = f"otlp.{key}" in self._config.final or self._environ.get(f"ACP_PROXY_OTLP__{key.upper()}")
        if own is not None and is_final:
            return own
        for name in variables:
            if value := self._environ.get(name):
                try:
                    return read(value)
                except ValueError as error:
                    raise ConfigError(f"{name}: {error}") from None
        return otherwise if own is None else own

    def of_signal(self, key: str, signal: Signal, name: str, read: Callable[[str], Any], otherwise: Any = None) -> Any:
        variables = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_{name}", f"OTEL_EXPORTER_OTLP_{name}")
        return self.either(key, variables, read, otherwise)

    @property
    def otlp(self) -> Otlp:
        return self._config.otlp


def _is_wanted(said: _Said, signal: Signal) -> bool:
    exporter = said.variable(f"OTEL_{signal.upper()}_EXPORTER", "otlp").lower()
    if exporter not in ("otlp", "none"):
        return False  # another exporter's, such as prometheus: that is what /metrics is for
    return exporter == "otlp" and signal in (said.otlp.signals or SIGNALS)


def _target(said: _Said, signal: Signal) -> Target | None:
    url = said.either(f"{signal}_endpoint", (f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT",), address, None)
    if url is None:
        base = said.either("endpoint", ("OTEL_EXPORTER_OTLP_ENDPOINT",), address, None)
        if base is None:
            return None
        url = f"{base.rstrip('/')}/v1/{signal}"
    said.of_signal("protocol", signal, "PROTOCOL", _protocol)
    return Target(
        signal,
        url,
        _headers(said, signal),
        said.of_signal("timeout", signal, "TIMEOUT", _milliseconds, _TIMEOUT),
        said.of_signal("compression", signal, "COMPRESSION", _compression, "gzip") == "gzip",
        _text(said.of_signal("certificate", signal, "CERTIFICATE", str)),
        _text(said.of_signal("client_certificate", signal, "CLIENT_CERTIFICATE", str)),
        _text(said.of_signal("client_key", signal, "CLIENT_KEY", str)),
    )


def _headers(said: _Said, signal: Signal) -> dict[str, str]:
    found: Secret | None = said.of_signal("headers", signal, "HEADERS", headers)
    where = "otlp.headers"
    if found is None and said.otlp.headers_file is not None:
        where = f"otlp.headers_file {said.otlp.headers_file}"
        found = Secret(file=said.otlp.headers_file)
    try:
        text = "" if found is None else found.text if found.file is None else _first_lines(found.file)
        return {name.lower(): unquote(value) for name, value in assignments(text or "").items()}
    except OSError as error:
        raise ConfigError(f"{where}: {reason_of(error)}") from error
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def _first_lines(file: Path) -> str:
    with file.open("rb") as opened:
        return ",".join(opened.read(_LARGEST).decode().split("\n"))


def _resource(said: _Said) -> dict[str, str]:
    text = said.either("resource_attributes", ("OTEL_RESOURCE_ATTRIBUTES",), attributes, "")
    resource = {name: unquote(value) for name, value in assignments(text).items()}
    service = said.either("service_name", ("OTEL_SERVICE_NAME",), str, None)
    name = service or resource.get("service.name", "acp-proxy")
    return {"service.version": __version__, **resource, "service.name": name}


def _milliseconds(value: str) -> float:
    """Seconds."""
    if not (value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER and int(value) > 0):
        raise ValueError("expected a number of milliseconds such as 10000")
    return int(value) / 1000


def _compression(value: str) -> str:
    if value.lower() not in ("gzip", "none"):
        raise ValueError(f"expected gzip or none{suggestion(value, ('gzip', 'none'))}")
    return value.lower()


def _temporality(value: str) -> str:
    """`lowmemory` asks for delta where that saves a client's memory, and here nothing does."""
    if value.lower() not in ("cumulative", "delta", "lowmemory"):
        raise ValueError("expected cumulative, delta or lowmemory")
    return "delta" if value.lower() == "delta" else "cumulative"


def _protocol(value: str) -> str:
    if value.lower() != "http/protobuf":
        raise ValueError("expected http/protobuf, the only protocol that is spoken here")
    return value


def _text(value: Path | str | None) -> str | None:
    return None if value is None else str(value)
