"""Where telemetry goes to: the variables of OpenTelemetry, the configuration, and which of them wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_proxy import __version__
from acp_proxy.config import Config, ConfigError, load
from acp_proxy.otlp.settings import OtlpSettings, settings_of
from tests.metrics.scrapes import configuration

BASE = "OTEL_EXPORTER_OTLP_"
ENDPOINT = {f"{BASE}ENDPOINT": "http://127.0.0.1:4318"}


def settings(directory: Path, text: str = "", **environ: str) -> OtlpSettings:
    found = settings_of(configuration(directory, text), environ)
    assert found is not None
    return found


def urls(found: OtlpSettings) -> dict[str, str]:
    return {target.signal: target.url for target in found.targets}


def test_without_an_endpoint_nothing_is_sent(tmp_path: Path) -> None:
    assert settings_of(configuration(tmp_path), {"OTEL_SERVICE_NAME": "costs"}) is None


def test_each_signal_has_its_path_below_the_endpoint(tmp_path: Path) -> None:
    assert urls(settings(tmp_path, **{f"{BASE}ENDPOINT": "https://collector.example.com/otlp/"})) == {
        "metrics": "https://collector.example.com/otlp/v1/metrics",
        "traces": "https://collector.example.com/otlp/v1/traces",
        "logs": "https://collector.example.com/otlp/v1/logs",
    }


def test_an_endpoint_of_one_signal_is_taken_as_it_is(tmp_path: Path) -> None:
    found = settings(tmp_path, **{f"{BASE}METRICS_ENDPOINT": "http://127.0.0.1:9090/api/v1/otlp/v1/metrics"})
    assert urls(found) == {"metrics": "http://127.0.0.1:9090/api/v1/otlp/v1/metrics"}


def test_the_configuration_has_the_same_keys(tmp_path: Path) -> None:
    text = """
    [otlp]
    endpoint = "http://127.0.0.1:4318"
    traces_endpoint = "https://traces.example.com/in"
    headers = "Api-Key=se%20cret, x-team = core"
    timeout = "2s"
    compression = "none"
    interval = "15s"
    temporality = "delta"
    signals = ["metrics", "traces"]
    service_name = "costs"
    resource_attributes = "deployment.environment.name=prod"
    gen_ai = true
    token_histogram = true
    """
    found = settings(tmp_path, text)
    assert urls(found) == {
        "metrics": "http://127.0.0.1:4318/v1/metrics",
        "traces": "https://traces.example.com/in",
    }
    for target in found.targets:
        assert (target.headers, target.timeout, target.gzip) == ({"api-key": "se cret", "x-team": "core"}, 2.0, False)
    assert (found.interval, found.delta, found.gen_ai, found.token_histogram) == (15.0, True, True, True)
    assert found.resource == {
        "service.name": "costs",
        "service.version": __version__,
        "deployment.environment.name": "prod",
    }


def test_the_variables_of_opentelemetry_are_understood(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        **ENDPOINT,
        **{
            f"{BASE}HEADERS": "api-key=one",
            f"{BASE}LOGS_HEADERS": "api-key=two",
            f"{BASE}TIMEOUT": "2500",
            f"{BASE}COMPRESSION": "none",
            f"{BASE}METRICS_COMPRESSION": "gzip",
            f"{BASE}METRICS_TEMPORALITY_PREFERENCE": "Delta",
        },
        OTEL_METRIC_EXPORT_INTERVAL="5000",
        OTEL_TRACES_EXPORTER="none",
        OTEL_RESOURCE_ATTRIBUTES="service.name=other,team=a%20b",
        OTEL_SERVICE_NAME="costs",
        OTEL_SEMCONV_STABILITY_OPT_IN="http, gen_ai_latest_experimental",
    )
    metrics, logs = found.targets
    assert (metrics.signal, metrics.headers, metrics.timeout, metrics.gzip) == (
        "metrics",
        {"api-key": "one"},
        2.5,
        True,
    )
    assert (logs.signal, logs.headers, logs.gzip) == ("logs", {"api-key": "two"}, False)
    assert (found.interval, found.delta, found.gen_ai) == (5.0, True, True)
    assert found.resource == {"service.name": "costs", "service.version": __version__, "team": "a b"}


def test_without_a_word_of_it_the_defaults_are_those_of_the_specification(tmp_path: Path) -> None:
    found = settings(tmp_path, **ENDPOINT)
    assert all((target.timeout, target.gzip, target.headers) == (10.0, True, {}) for target in found.targets)
    assert (found.interval, found.delta, found.gen_ai) == (60.0, False, False)
    assert found.resource["service.name"] == "acp-proxy"


@pytest.mark.parametrize("disabled", ["true", "TRUE"])
def test_it_can_be_disabled_as_a_whole(tmp_path: Path, disabled: str) -> None:
    assert settings_of(configuration(tmp_path), {**ENDPOINT, "OTEL_SDK_DISABLED": disabled}) is None


@pytest.mark.parametrize("exporter", ["none", "prometheus", "console"])
def test_a_signal_with_another_exporter_is_not_sent(tmp_path: Path, exporter: str) -> None:
    found = settings(tmp_path, **ENDPOINT, OTEL_METRICS_EXPORTER=exporter, OTEL_LOGS_EXPORTER="otlp")
    assert set(urls(found)) == {"traces", "logs"}


def _administered(directory: Path, text: str, **environ: str) -> Config:
    admin = directory / "admin.toml"
    admin.write_text(text)
    return load({}, {"HOME": str(directory), **environ}, admin_file=admin)


def test_a_variable_wins_over_the_users_file_and_the_administrators_over_both(tmp_path: Path) -> None:
    users = '[otlp]\nendpoint = "http://127.0.0.1:1"\n'
    assert settings(tmp_path, users, **ENDPOINT).targets[0].url == "http://127.0.0.1:4318/v1/metrics"
    found = settings_of(_administered(tmp_path, users), ENDPOINT)
    assert found is not None
    assert found.targets[0].url == "http://127.0.0.1:1/v1/metrics"


def test_a_variable_of_our_own_wins_over_that_of_all_programs(tmp_path: Path) -> None:
    environ = {**ENDPOINT, "ACP_PROXY_OTLP__ENDPOINT": "http://127.0.0.1:2"}
    found = settings_of(_administered(tmp_path, "", **environ), environ)
    assert found is not None
    assert found.targets[0].url == "http://127.0.0.1:2/v1/metrics"


def test_headers_may_stand_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "headers"
    secret.write_text("Authorization=Basic%20abc\nx-scope=one\n")
    found = settings(tmp_path, f'[otlp]\nheaders_file = "{secret}"\n', **ENDPOINT)
    assert found.targets[0].headers == {"authorization": "Basic abc", "x-scope": "one"}


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("ENDPOINT", "localhost:4317", "expected the URL of a collector"),
        ("ENDPOINT", "grpc://localhost:4317", "expected the URL of a collector"),
        ("TIMEOUT", "10s", "expected a number of milliseconds"),
        ("TIMEOUT", "0", "expected a number of milliseconds"),
        ("COMPRESSION", "zstd", "expected gzip or none"),
        ("PROTOCOL", "grpc", "expected http/protobuf"),
        ("HEADERS", "VERYSECRET", "expected NAME=VALUE"),
        ("METRICS_TEMPORALITY_PREFERENCE", "sometimes", "expected cumulative, delta or lowmemory"),
    ],
)
def test_what_cannot_be_used_is_one_line_that_shows_no_secret(
    tmp_path: Path, variable: str, value: str, expected: str
) -> None:
    with pytest.raises(ConfigError) as error:
        settings(tmp_path, **{**ENDPOINT, f"{BASE}{variable}": value})
    said = str(error.value)
    assert said.startswith(f"{BASE}{variable}: {expected}")
    assert "\n" not in said
    assert "VERYSECRET" not in said


def test_a_file_of_headers_that_cannot_be_used_is_named_and_not_shown(tmp_path: Path) -> None:
    secret = tmp_path / "headers"
    text = f'[otlp]\nheaders_file = "{secret}"\n'
    with pytest.raises(ConfigError, match="headers: no such file"):
        settings(tmp_path, text, **ENDPOINT)
    secret.write_text("VERYSECRET")
    with pytest.raises(ConfigError, match="headers: expected NAME=VALUE") as error:
        settings(tmp_path, text, **ENDPOINT)
    assert "VERYSECRET" not in str(error.value)


def test_headers_are_never_shown(tmp_path: Path) -> None:
    config = configuration(tmp_path, '[otlp]\nheaders = "api-key=VERYSECRET"\n')
    found = settings_of(config, ENDPOINT)
    assert found is not None
    assert found.targets[0].headers == {"api-key": "VERYSECRET"}
    assert "VERYSECRET" not in repr(config) + repr(found)
