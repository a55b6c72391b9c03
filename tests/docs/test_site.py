"""The pages of docs/ make a site: each is in its navigation, no link is broken, nothing comes from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.serve.page.browser import chromium

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
PLACES = re.compile(r"`((?:deploy|grafana|scripts|examples|tests|bench|acp_proxy)/[\w./-]*)`")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(built)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if "WARNING" in line)
    return built


@pytest.mark.needs("chromium")
@pytest.mark.xdist_group("site")
def test_every_page_is_there_and_all_links_and_anchors_are_found(site: Path) -> None:
    assert {page.stem for page in PAGES} <= {page.stem for page in site.glob("*.html")}


@pytest.mark.needs("chromium")
@pytest.mark.xdist_group("site")
def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = {source for page in site.glob("*.html") for source in sources(page.read_text(encoding="utf-8"))}
    assert any("stylesheets" in source for source in loaded)
    assert [source for source in loaded if re.match(r"\w+:|//", source) and not source.startswith("data:")] == []
    styles = "".join(style.read_text(encoding="utf-8") for style in site.rglob("*.css"))
    assert re.findall(r"url\(['\"]?(?:https?:)?//[^)]*\)|@import[^;]*", styles) == []


@pytest.mark.needs("chromium")
@pytest.mark.xdist_group("site")
def test_no_name_in_a_table_is_broken_in_mid_word(site: Path) -> None:
    broken = """[...document.querySelectorAll('td code')].filter(name =>
        /^\\w+$/.test(name.textContent) && name.getClientRects().length > 1).map(name => name.textContent)"""
    with chromium() as browser:
        # Scripts of the theme move no table, and take most of the time.
        page = browser.new_page(viewport={"width": 768, "height": 900}, java_script_enabled=False)
        for file in sorted(site.glob("*.html")):
            page.goto(file.as_uri())
            assert page.evaluate(broken) == [], file.name


def test_a_place_in_the_repository_that_a_page_names_is_there() -> None:
    named = [(page.stem, place) for page in PAGES for place in PLACES.findall(page.read_text(encoding="utf-8"))]
    assert named
    assert [(page, place) for page, place in named if not (ROOT / place).exists()] == []


def test_a_page_links_to_no_file_beside_the_pages() -> None:
    texts = {page.stem: page.read_text(encoding="utf-8") for page in PAGES}
    assert [(page, link) for page, text in texts.items() for link in re.findall(r"\]\((\.\./[^)]*)\)", text)] == []


def test_a_list_after_text_has_a_blank_line_before_it_or_it_is_no_list() -> None:
    assert [(page.stem, line) for page in PAGES for line in glued(page.read_text(encoding="utf-8"))] == []


def glued(text: str) -> list[str]:
    """First items of lists right below a line of text, which GitHub takes for lists and Python's Markdown does not."""
    prose = re.sub(r"^ *```.*?^ *```$", "```", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^(?! |- |\d+\. |#|<!--|$)[^\n]*\n((?:- |\d+\. )[^\n]*)", prose, re.MULTILINE)


def sources(html: str) -> list[str]:
    """What a browser fetches to show the page; links are not fetched."""
    found: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            named = dict(attributes)
            found.extend(source for source in (named.get("src"),) if source)
            if tag == "link" and named.get("rel") not in ("canonical", "next", "prev") and named.get("href"):
                found.append(str(named["href"]))

    Tags().feed(html)
    return found
