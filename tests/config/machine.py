"""A machine with configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from acp_proxy.config import Config, ConfigError, load


class Machine:
    """A user's home directory and an administrator's file; `load` reads them as a command does."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.user_file = self.home / ".config/acp-proxy/config.toml"
        self.admin_file = root / "etc/config.toml"
        self.home.mkdir()

    def user(self, text: str) -> Path:
        return write(self.user_file, text)

    def admin(self, text: str) -> Path:
        return write(self.admin_file, text)

    def load(self, options: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> Config:
        environment = {"HOME": str(self.home), "USER": "login", **(environ or {})}
        return load(options or {}, environment, admin_file=self.admin_file)

    def error(self, options: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(options, environ)
        text = str(caught.value)
        assert "\n" not in text
        return text.replace(str(self.user_file), "FILE").replace(str(self.admin_file), "ADMIN")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
