"""Interceptors of other packages are found where they are installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_proxy.plugins import installed
from tests.packages import install


class Said:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, dict[str, Any]]] = []

    def __call__(self, level: str, event: str, **fields: Any) -> None:
        self.events.append((level, event, fields))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of installed packages, importable."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_an_interceptor_that_a_package_names_is_made_once(site: Path) -> None:
    install(site, "plugin_good", "from acp_proxy.interceptor import Interceptor\nclass Watcher(Interceptor): pass\n")
    said = Said()
    assert [type(each).__name__ for each in installed(said, [str(site)])] == ["Watcher"]
    assert said.events == []


def test_one_whose_package_is_on_the_path_twice_is_made_once(
    site: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    install(site, "plugin_twice", "from acp_proxy.interceptor import Interceptor\nclass Watcher(Interceptor): pass\n")
    other = tmp_path_factory.mktemp("other")
    install(other, "plugin_twice", "raise RuntimeError('hidden by the first')\n")
    said = Said()
    assert len(installed(said, [str(site), str(other), str(site)])) == 1
    assert said.events == []


@pytest.mark.parametrize(
    ("module", "code", "reason"),
    [
        ("plugin_raises", "raise RuntimeError('no')\n", "RuntimeError: no"),
        ("plugin_exits", "raise SystemExit('wants another Python')\n", "SystemExit: wants another Python"),
        ("plugin_moved", "from acp_proxy.was_here import Log\n", "No module named 'acp_proxy.was_here'"),
        ("plugin_other", "class Watcher: pass\n", "it is no acp_proxy.interceptor.Interceptor"),
        ("plugin_needs", "class Watcher:\n    def __init__(self, a): pass\n", "TypeError"),
    ],
)
def test_one_that_cannot_be_loaded_is_logged_and_left_out(site: Path, module: str, code: str, reason: str) -> None:
    install(site, module, code)
    said = Said()
    assert installed(said, [str(site)]) == []
    ((level, event, fields),) = said.events
    assert (level, event, fields["name"]) == ("error", "interceptor not loaded", "watcher")
    assert reason in fields["error"]


@pytest.mark.parametrize("entries", [b"[other]\n\xe9 = a:b\n", b"[console_scripts]\nno-value\n"])
def test_a_package_whose_entry_points_cannot_be_read_hides_no_other(site: Path, entries: bytes) -> None:
    install(site, "plugin_here", "from acp_proxy.interceptor import Interceptor\nclass Watcher(Interceptor): pass\n")
    broken = site / "a_broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: a_broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_bytes(entries)
    assert [type(each).__name__ for each in installed(Said(), [str(site)])] == ["Watcher"]


def test_packages_without_interceptors_cost_no_import(site: Path) -> None:
    install(site, "plugin_foreign", "raise RuntimeError('imported')\n", group="another.group")
    assert installed(Said(), [str(site), str(site / "missing")]) == []
