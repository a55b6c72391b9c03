"""Packages of other people, as an installer leaves them."""

from __future__ import annotations

from pathlib import Path


def install(site: Path, module: str, code: str, group: str = "acp_proxy.interceptors") -> None:
    (site / f"{module}.py").write_text(code)
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nwatcher = {module}:Watcher\n")
