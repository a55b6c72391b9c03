"""The hub's files: each hub.toml is read by the hub, each command line by acp-proxy, the rest by its own tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from acp_proxy import __version__
from acp_proxy.cli.commands import parser
from acp_proxy.hub.settings import Settings, load
from tests.deploy.tools import compose

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = DEPLOY / "hub/compose.yaml"
KUBERNETES = DEPLOY / "kubernetes/hub"
MADE: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
HUB, POSTGRES = MADE["services"]["hub"], MADE["services"]["postgres"]


def manifest(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((KUBERNETES / f"{name}.yaml").read_text())
    return loaded


POD: dict[str, Any] = manifest("deployment")["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]
EACH = pytest.mark.parametrize("way", ["compose", "kubernetes"])


def settings(way: str, directory: Path) -> Settings:
    """As a hub reads them, with secrets in `directory` in place of where containers have them."""
    file, secrets = {
        "compose": (DEPLOY / "hub/hub.toml", "/run/secrets/"),
        "kubernetes": (KUBERNETES / "hub.toml", f"{mounted('secrets')}/"),
    }[way]
    for name in ("database_password", "database-password"):
        (directory / name).write_text("0a1b2c\n")
    (copy := directory / "hub.toml").write_text(file.read_text().replace(secrets, f"{directory}/"))
    return load(copy, {})


def mounted(volume: str) -> str:
    (path,) = [each["mountPath"] for each in CONTAINER["volumeMounts"] if each["name"] == volume]
    return str(path)


@EACH
def test_the_hub_reads_its_file_and_the_password_beside_it(way: str, tmp_path: Path) -> None:
    found = settings(way, tmp_path)
    assert urlsplit(found.database.url).password == "0a1b2c"
    assert urlsplit(found.url).scheme == "https"
    assert found.listen.host == "0.0.0.0"
    assert found.listen.trusted  # without TLS of its own it would not listen there


@EACH
def test_acp_proxy_takes_the_command_line_and_finds_the_file_that_is_mounted(way: str) -> None:
    asked = parser().parse_args(HUB["command"] if way == "compose" else CONTAINER["args"])
    assert (asked.command, asked.action, asked.port) == ("hub", None, None)
    there = f"{mounted('config')}/hub.toml" if way == "kubernetes" else HUB["volumes"][0].split(":")[1]
    assert asked.config == there


@EACH
def test_it_is_asked_at_the_port_on_which_it_listens(way: str, tmp_path: Path) -> None:
    port = settings(way, tmp_path).listen.port
    if way == "compose":
        assert HUB["ports"] == [f"127.0.0.1:{port}-{port + 1}:{port}"]
        assert f"http://127.0.0.1:{port}/healthz" in HUB["healthcheck"]["test"][-1]
        return
    assert [each["containerPort"] for each in CONTAINER["ports"]] == [port]
    assert manifest("networkpolicy")["spec"]["ingress"][0]["ports"] == [{"port": port}]


def test_compose_takes_its_file_with_one_hub_and_with_two() -> None:
    for asked, replicas in (({}, 1), ({"HUB_REPLICAS": "2"}, 2)):
        status, says = compose(COMPOSE, asked, "--format", "json")
        assert status == 0, says
        assert json.loads(says)["services"]["hub"]["deploy"]["replicas"] == replicas


@pytest.mark.parametrize("name", MADE["services"])
def test_a_container_can_write_nothing_but_what_it_has_to(name: str) -> None:
    service = MADE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "build" in service or service["user"] != "root"  # the image of a build has its own user
    writable = [each.split(":")[0] for each in service["volumes"] if not each.endswith(":ro")]
    assert writable == (["ledger"] if name == "postgres" else [])


def test_the_password_is_a_file_that_both_read_and_stands_nowhere_else() -> None:
    assert POSTGRES["environment"]["POSTGRES_PASSWORD_FILE"] == "/run/secrets/database_password"
    assert POSTGRES["secrets"] == HUB["secrets"] == list(MADE["secrets"])
    assert "environment" not in HUB
    assert "env" not in CONTAINER


def test_the_address_that_is_trusted_is_the_gateway_by_which_the_host_comes(tmp_path: Path) -> None:
    (network,) = MADE["networks"]["edge"]["ipam"]["config"]
    assert settings("compose", tmp_path).listen.trusted == (network["gateway"],)


def test_the_image_is_that_of_this_version() -> None:
    assert HUB["image"] == f"acp-proxy:{__version__}"
    assert HUB["build"] == {"context": "../..", "dockerfile": "deploy/Dockerfile"}
    assert yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["images"][0]["newTag"] == __version__


def test_what_is_mounted_is_there() -> None:
    mounts = [each.split(":")[0] for service in (HUB, POSTGRES) for each in service["volumes"]]
    assert [each for each in mounts if each.startswith(".") and not (COMPOSE.parent / each).exists()] == []


def test_the_pod_is_what_the_restricted_profile_asks_for() -> None:
    assert POD["spec"]["securityContext"]["runAsNonRoot"] is True
    assert POD["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert [key for volume in POD["spec"]["volumes"] for key in volume if key != "name"] == ["configMap", "secret"]


def test_a_database_that_is_down_makes_a_pod_unready_and_does_not_restart_it() -> None:
    assert CONTAINER["readinessProbe"]["httpGet"]["path"] == "/healthz"
    assert CONTAINER["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert CONTAINER["startupProbe"]["httpGet"]["path"] == "/livez"


def test_of_two_pods_one_answers_while_nodes_are_drained_and_versions_change() -> None:
    spec = manifest("deployment")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert manifest("poddisruptionbudget")["spec"]["minAvailable"] == 1


def test_service_policy_and_disruption_budget_are_about_that_pod() -> None:
    labels = POD["metadata"]["labels"]
    assert manifest("service")["spec"]["selector"] == labels
    assert manifest("networkpolicy")["spec"]["podSelector"]["matchLabels"] == labels
    assert manifest("poddisruptionbudget")["spec"]["selector"]["matchLabels"] == labels


def test_the_ingress_has_tls_under_the_name_that_the_hub_is_told(tmp_path: Path) -> None:
    spec = manifest("ingress")["spec"]
    name = urlsplit(settings("kubernetes", tmp_path).url).hostname
    assert [each["host"] for each in spec["rules"]] == [name]
    assert [each["hosts"] for each in spec["tls"]] == [[name]]
    (path,) = spec["rules"][0]["http"]["paths"]
    service = manifest("service")
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]
    assert path["backend"]["service"]["port"]["name"] == service["spec"]["ports"][0]["name"]
