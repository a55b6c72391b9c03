"""What goes to a package index: the wheel holds the package and nothing else, and its page there is complete."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.metadata import PackageMetadata, PathDistribution
from pathlib import Path

import pytest
import yaml
from readme_renderer import markdown

from acp_proxy import __version__

ROOT = Path(__file__).parents[1]
ADDRESS = "https://github.com/acp-proxy/acp-proxy"
INFO = f"acp_proxy-{__version__}.dist-info"
pytestmark = pytest.mark.xdist_group("distribution")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist, and the wheel that is built from it alone, as an index would have it."""
    place = tmp_path_factory.mktemp("built")
    build("sdist", ROOT, place)
    (place / "unpacked").mkdir()
    subprocess.run(["tar", "-xzf", next(place.glob("*.tar.gz")), "-C", place / "unpacked"], check=True, timeout=60)
    build("wheel", place / "unpacked" / f"acp_proxy-{__version__}", place)
    return place


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(built / f"acp_proxy-{__version__}-py3-none-any.whl")


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> PackageMetadata:
    return PathDistribution(zipfile.Path(wheel, f"{INFO}/")).metadata


def test_twine_finds_nothing_in_sdist_and_wheel(built: Path) -> None:
    files = [*built.glob("*.tar.gz"), *built.glob("*.whl")]
    assert len(files) == 2
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel: zipfile.ZipFile) -> None:
    known = subprocess.check_output(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "acp_proxy"], cwd=ROOT, text=True
    )
    package = {name for name in known.split("\0") if name and (ROOT / name).exists()}
    names = set(wheel.namelist())
    assert {name for name in names if not name.startswith(f"{INFO}/")} == package
    assert {name.removeprefix(f"{INFO}/") for name in names - package} == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
    }


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "catalog/catalog.json",
        "completion/acp-proxy.bash",
        "completion/acp-proxy.fish",
        "completion/acp-proxy.zsh",
        "serve/page/index.html",
        "serve/page/page.js",
        "serve/page/page.css",
    ],
)
def test_the_wheel_holds_what_is_no_python(wheel: zipfile.ZipFile, name: str) -> None:
    assert wheel.getinfo(f"acp_proxy/{name}").file_size == (ROOT / "acp_proxy" / name).stat().st_size


def test_the_sdist_holds_what_was_asked_for_and_nothing_of_a_work_tree(built: Path) -> None:
    (top,) = (built / "unpacked").iterdir()
    made = {".gitignore", "PKG-INFO", "pyproject.toml"}
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    asked = hatch["build"]["targets"]["sdist"]["include"]
    assert {path.name for path in top.iterdir()} == made | {name.removeprefix("/") for name in asked}
    assert [path for path in top.rglob("*") if path.name in ("__pycache__", ".venv", ".git")] == []


def test_the_metadata_says_who_what_where_and_under_which_licence(metadata: PackageMetadata) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("acp-proxy", __version__)
    assert (metadata["License-Expression"], metadata["License-File"]) == ("Apache-2.0", "LICENSE")
    assert metadata["Author"]
    assert [name for name in metadata if name.endswith("-email")] == []  # nobody's address is given away
    assert len(metadata["Summary"]) < 512  # the index takes no more
    assert "agent-client-protocol" in metadata["Keywords"].split(",")
    assert metadata["Description-Content-Type"] == "text/markdown"
    kinds = {each.partition(" :: ")[0] for each in metadata.get_all("Classifier") or []}
    assert kinds >= {"Development Status", "Framework", "Intended Audience", "Operating System", "Topic", "Typing"}


def test_every_address_of_the_project_is_below_one_home(metadata: PackageMetadata) -> None:
    urls = dict(url.split(", ", 1) for url in metadata.get_all("Project-URL") or [])
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Source", "Issues"}
    assert [url for url in urls.values() if url != ADDRESS and not url.startswith(f"{ADDRESS}/")] == []
    paths = re.findall(rf"{ADDRESS}/blob/main/(\S+)", " ".join(urls.values()))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_link_on_the_page_of_the_index_leads_to_a_file_of_this_version(metadata: PackageMetadata) -> None:
    found = list(links(metadata))
    assert [link for link in found if not link.startswith(("https://", "#"))] == []
    raw = ADDRESS.replace("github.com", "raw.githubusercontent.com")
    ours = [link for link in found if link.startswith((f"{ADDRESS}/", f"{raw}/"))]
    places = [re.sub(rf"^(?:{ADDRESS}/blob|{raw})/v{re.escape(__version__)}/([^#]+).*", r"\1", link) for link in ours]
    assert "docs/install.md" in places
    assert "docs/pictures/page-light.png" in places
    assert [place for place in places if not (ROOT / place).is_file()] == []


def test_the_readme_itself_keeps_its_relative_links() -> None:
    """Those work in a clone, and on any host that the project moves to."""
    assert ADDRESS not in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_workflow_that_publishes_holds_no_secret_and_uploads_what_was_built() -> None:
    page = (ROOT / "docs/releasing.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert "secrets." not in text
    workflow = yaml.safe_load(text)
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert workflow["permissions"] == {}
    assert (build["permissions"], publish["permissions"]) == ({"contents": "read"}, {"id-token": "write"})
    assert {"run": "scripts/release"} in build["steps"]
    assert publish["needs"] == "build"
    sent, received = (
        step["with"] for job in (build, publish) for step in job["steps"] if "-artifact@" in step.get("uses", "")
    )
    assert sent == received


def test_the_workflow_refuses_a_tag_of_another_version() -> None:
    page = (ROOT / "docs/releasing.md").read_text(encoding="utf-8")
    (check,) = re.findall(r"- run: (grep .*)$", page, re.MULTILINE)
    tags = (f"v{__version__}", "v99.0.0", __version__.replace(".", "x"))
    environs = [{"PATH": "/usr/bin:/bin", "GITHUB_REF_NAME": tag} for tag in tags]
    done = [subprocess.run(["sh", "-c", check], cwd=ROOT, env=environ, check=False) for environ in environs]
    assert [each.returncode for each in done] == [0, 1, 1]


def links(metadata: PackageMetadata) -> Iterator[str]:
    """Where the page leads to, and what it shows, in the HTML that the index makes of the description."""
    html = markdown.render(metadata.get_payload())  # type: ignore[attr-defined]
    assert html
    found: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            found.extend(value for name, value in attributes if name in ("href", "src") and value)

    Tags().feed(html)
    yield from found


def build(target: str, source: Path, place: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(place)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
