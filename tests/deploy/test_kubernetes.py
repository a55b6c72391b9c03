"""The manifests against Kubernetes' own schemas, and against what its restricted profile asks for."""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from acp_proxy import __version__
from acp_proxy.config import without_files
from acp_proxy.serve.guard import Policy
from tests.deploy.tools import run

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
BASE = KUBERNETES / "base"
OVERLAYS = sorted(path.parent for path in KUBERNETES.glob("*/kustomization.yaml"))
POD: dict[str, Any] = yaml.safe_load((BASE / "deployment.yaml").read_text())["spec"]["template"]
LABELS = POD["metadata"]["labels"]


def of(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((BASE / name).read_text())
    return loaded


def test_every_manifest_fits_the_schema_of_its_kind() -> None:
    manifests = sorted(KUBERNETES.glob("*/*.yaml"))
    status, says = run(
        "kubernetes-validate", "--strict", *(path for path in manifests if path.name != "kustomization.yaml")
    )
    assert status == 0, says


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_kustomize_builds_it_with_the_version_and_the_configuration(overlay: Path) -> None:
    status, says = run("kubectl", "kustomize", overlay)
    assert status == 0, says
    built = {each["kind"]: each for each in yaml.safe_load_all(says)}
    pod = built["Deployment"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == f"acp-proxy:{__version__}"
    assert {"configMap": {"name": built["ConfigMap"]["metadata"]["name"]}, "name": "config"} in pod["volumes"]
    assert ("ServiceMonitor" in built) == (overlay.name == "prometheus-operator")


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_what_a_kustomization_names_is_there(overlay: Path) -> None:
    kustomization = yaml.safe_load((overlay / "kustomization.yaml").read_text())
    generated = [file for each in kustomization.get("configMapGenerator", []) for file in each["files"]]
    assert [name for name in (*kustomization["resources"], *generated) if not (overlay / name).exists()] == []


def test_the_pod_is_what_the_restricted_profile_asks_for() -> None:
    (container,) = POD["spec"]["containers"]
    assert POD["spec"]["securityContext"]["runAsNonRoot"] is True
    assert POD["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"configMap", "secret", "emptyDir"} >= {key for volume in POD["spec"]["volumes"] for key in volume} - {
        "name"
    }


def test_service_policy_and_disruption_budget_are_about_that_pod() -> None:
    assert of("service.yaml")["spec"]["selector"] == LABELS
    assert of("networkpolicy.yaml")["spec"]["podSelector"]["matchLabels"] == LABELS
    assert of("poddisruptionbudget.yaml")["spec"]["selector"]["matchLabels"] == LABELS


def test_a_ledger_that_is_down_makes_it_unready_and_does_not_restart_it() -> None:
    (container,) = POD["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert of("service.yaml")["spec"]["publishNotReadyAddresses"] is True


def test_a_ledger_that_is_brought_up_to_date_at_the_start_is_given_time() -> None:
    """What ends it before would do so each time."""
    (container,) = POD["spec"]["containers"]
    probe = container["startupProbe"]
    assert probe["httpGet"] == container["livenessProbe"]["httpGet"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 3600


def test_prometheus_may_ask_by_the_services_name_from_any_namespace() -> None:
    (container,) = POD["spec"]["containers"]
    environ = {each["name"]: each for each in container["env"]}
    names = "ACP_PROXY_SERVE__ALLOWED_HOSTS"
    assert list(environ).index("NAMESPACE") < list(environ).index(names)  # else it is not filled in
    assert environ["NAMESPACE"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
    value = environ[names]["value"].replace("$(NAMESPACE)", "acp-proxy")
    policy = Policy.of(without_files({}, {names: value}).serve.allowed_hosts, None)
    service = of("service.yaml")["metadata"]["name"]
    assert {f"{service}{rest}" for rest in ("", ".acp-proxy", ".acp-proxy.svc")} < policy.hosts
    (target,) = re.findall(r"scrape `([^`]+):9464`", (KUBERNETES.parent / "README.md").read_text(encoding="utf-8"))
    assert target in policy.hosts


def test_the_configuration_is_that_of_the_developers_machines() -> None:
    assert (BASE / "config.toml").read_bytes() == (KUBERNETES.parent / "config.toml").read_bytes()


def test_the_operator_gets_the_rules_of_the_files_and_grafana_the_dashboards(tmp_path: Path) -> None:
    (steps,) = [block for block in shell_blocks(KUBERNETES.parent / "README.md") if "PrometheusRule" in block]
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(
        '#!/bin/sh\ncase "$*" in *"apply -f -") cat; echo ---;; *) printf "%s\\n" "$*" >> "$0.called";; esac\n'
    )
    kubectl.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["sh", "-ec", steps], cwd=ROOT, env=environ, capture_output=True, check=True, timeout=60)
    applied = [each for each in yaml.safe_load_all(done.stdout) if each]
    assert [(each["kind"], each["metadata"]["name"]) for each in applied] == [
        ("PrometheusRule", "acp-proxy-recording"),
        ("PrometheusRule", "acp-proxy-alert"),
    ]
    for each, file in zip(applied, ("recording.rules.yml", "alert.rules.yml"), strict=True):
        assert each["spec"] == yaml.safe_load((ROOT / "deploy/prometheus" / file).read_text(encoding="utf-8"))
    created, _ = (tmp_path / "kubectl.called").read_text().splitlines()
    (source,) = re.findall(r"--from-file=(\S+)", created)
    assert len(list((ROOT / source).glob("*.json"))) == 5


def shell_blocks(page: Path) -> list[str]:
    """Those of a page, also of steps that are numbered."""
    found = re.findall(r"^ *```sh\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for block in found]
