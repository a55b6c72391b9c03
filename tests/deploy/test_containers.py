"""Image and compose file, read by hadolint and by Docker Compose itself; nothing is pulled or started."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from acp_proxy import __version__, config
from acp_proxy.ledger import open_ledger
from harness.postgres import asked, running
from tests.deploy.tools import compose, run

DEPLOY = Path(__file__).parents[2] / "deploy"
FILE = DEPLOY / "compose.yaml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
SETTINGS = {"LEDGER_PASSWORD": "a", "LEDGER_HOST": "ledger.example.org", "GRAFANA_PASSWORD": "b"}


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    assert run("hadolint", DEPLOY / "Dockerfile") == (0, "")


def test_compose_takes_its_file() -> None:
    assert compose(FILE, SETTINGS) == (0, "")


@pytest.mark.parametrize("missing", SETTINGS)
def test_compose_starts_nothing_without_a_setting_that_has_no_default(missing: str) -> None:
    status, error = compose(FILE, {name: value for name, value in SETTINGS.items() if name != missing})
    assert status != 0
    assert f"required variable {missing} is missing a value" in error


@pytest.mark.parametrize(("names", "hosts"), [("", "serve"), ("costs.example.org", "serve,costs.example.org")])
def test_names_for_people_are_added_to_that_for_prometheus(names: str, hosts: str) -> None:
    status, says = compose(FILE, {**SETTINGS, "SERVE_NAMES": names}, "--format", "json")
    assert status == 0, says
    assert json.loads(says)["services"]["serve"]["environment"]["ACP_PROXY_SERVE__ALLOWED_HOSTS"] == hosts


def test_whoever_has_the_password_of_the_ledger_owns_it_and_no_more() -> None:
    """A superuser may run programs on the server, and an agent finds the password that its proxy has."""
    with running() as server:
        environ = {"PATH": f"{server.program('psql').parent}:{os.environ['PATH']}", "PGHOST": "127.0.0.1"}
        environ |= {"PGPORT": str(server.port), "POSTGRES_USER": "owner", "POSTGRES_PASSWORD": 'it\'s "one"'}
        subprocess.run([DEPLOY / "postgres/roles.sh"], env=environ, check=True, timeout=60)
        with closing(open_ledger(server.url("acp_proxy").replace("owner:", "acp_proxy:"), journals=())) as ledger:
            assert "0 rows" in ledger.check()

        sql = "SELECT rolname, rolsuper, rolpassword IS NULL FROM pg_authid WHERE rolname !~ '^pg_' ORDER BY 1"
        assert asked(server.url("postgres"), sql) == [("acp_proxy", False, False), ("owner", True, True)]


def test_the_superuser_is_not_whom_the_configuration_names() -> None:
    postgres = SERVICES["postgres"]
    assert postgres["environment"]["POSTGRES_USER"] == "postgres"
    assert "./postgres/roles.sh:/docker-entrypoint-initdb.d/roles.sh:ro" in postgres["volumes"]
    assert os.access(DEPLOY / "postgres/roles.sh", os.X_OK)


def test_what_the_image_holds_is_pinned_and_runs_as_somebody_without_a_name_to_lose() -> None:
    assert re.findall(r"^ARG PYTHON=(\d+\.\d+\.\d+)-slim", DOCKERFILE, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"python:${PYTHON}"}
    installs = re.findall(r"pip install (.+?) \\$", DOCKERFILE, re.MULTILINE)
    assert all("--require-hashes --requirement requirements.lock" in each or "--no-deps" in each for each in installs)
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.MULTILINE) == ["10001:10001"]
    assert "HEALTHCHECK" in DOCKERFILE


def test_whoever_it_runs_as_can_write_in_a_home_that_a_tmpfs_covers() -> None:
    """A tmpfs belongs to root, and takes its mode from what it covers."""
    assert SERVICES["serve"]["tmpfs"] == ["/var/lib/acp-proxy"]
    assert "chmod 1777 /var/lib/acp-proxy" in DOCKERFILE


def test_what_the_build_copies_is_let_through_by_its_ignore_file() -> None:
    copied = " ".join(re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)).split()
    let_through = re.findall(r"^!(.+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert sorted(copied) == sorted(let_through)
    assert [name for name in copied if not (DEPLOY.parent / name).exists()] == []


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_pinned_watched_and_published_on_loopback_unless_told(name: str) -> None:
    service = SERVICES[name]
    assert re.search(r":v?\d+\.\d+", service["image"])
    assert "healthcheck" in service or "build" in service
    assert all(re.match(r"\$\{\w+_ADDRESS:-127\.0\.0\.1\}:\d+:\d+$", port) for port in service.get("ports", []))
    assert "no-new-privileges:true" in service["security_opt"]


def test_the_image_is_tagged_with_the_version_that_it_is_built_from() -> None:
    assert SERVICES["serve"]["image"] == f"acp-proxy:{__version__}"


def test_what_is_mounted_is_there() -> None:
    mounts = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])]
    assert [mount for mount in mounts if mount.startswith(".") and not (DEPLOY / mount).exists()] == []


def test_an_update_starts_anew_whatever_reads_files_of_the_repository() -> None:
    """Compose does not look into them: Prometheus would go on with the rules of the old version."""
    (update,) = re.findall(
        r"^\| update \| .*docker compose up .* docker compose restart .*$",
        (DEPLOY / "README.md").read_text(),
        re.MULTILINE,
    )
    restarted = re.findall(r"docker compose restart ([a-z ]+)`", update)[0].split()
    reading = [name for name, service in SERVICES.items() if any(each[0] == "." for each in service.get("volumes", []))]
    once = ["postgres"]  # when the database is made
    assert sorted(restarted) == sorted(set(reading) - {*once, *(name for name in reading if "build" in SERVICES[name])})


def test_the_configuration_of_a_team_is_valid(tmp_path: Path) -> None:
    loaded = config.load({}, {"HOME": str(tmp_path)}, admin_file=DEPLOY / "config.toml")
    assert loaded.ledger.url == f"postgresql://acp_proxy@{SETTINGS['LEDGER_HOST']}/acp_proxy"
    assert [budget.name for budget in loaded.budgets] == ["developer-daily", "team-monthly"]
    round_trips = 12  # at most, until a prompt holds of both budgets
    assert loaded.ledger.admission_timeout >= round_trips * 0.2  # seconds, to a ledger on another continent
