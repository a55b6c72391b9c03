"""A home directory with editors in it, and `acp-proxy setup` at work there."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from acp_proxy.setup import command
from acp_proxy.setup.changes import SetupError

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Machine:
    home: Path

    @property
    def zed(self) -> Path:
        return self.home / ".config/zed/settings.json"

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": f"{self.home}/bin"}

    @property
    def kept(self) -> list[Path]:
        return sorted((self.home / ".local/state/acp-proxy/setup").glob("*"))

    def settings_of(self, editor: str) -> Path:
        """Where they are, with the directories around them."""
        if editor == "obsidian":
            return self.vault("Notes") / ".obsidian/plugins/agent-client/data.json"
        path = {
            "zed": self.zed,
            "vscode": self.home / ".config/Code/User/settings.json",
            "jetbrains": self.home / ".jetbrains/acp.json",
            "acpx": self.home / ".acpx/config.json",
        }
        path[editor].parent.mkdir(parents=True, exist_ok=True)
        return path[editor]

    def vault(self, name: str) -> Path:
        """One with the plugin, among all those that were made."""
        vault = self.home / name
        (vault / ".obsidian/plugins/agent-client").mkdir(parents=True, exist_ok=True)
        vaults = [path.parent for path in self.home.glob("*/.obsidian")]
        known = {str(number): {"path": str(path), "ts": 1} for number, path in enumerate(vaults)}
        (self.home / ".config/obsidian").mkdir(parents=True, exist_ok=True)
        (self.home / ".config/obsidian/obsidian.json").write_text(json.dumps({"vaults": known}))
        return vault

    def write(self, editor: str, text: str | bytes) -> Path:
        path = self.settings_of(editor)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def setup(
        self, editor: str, agent: str | None = None, *, dry_run: bool = False, undo: bool = False, colours: bool = False
    ) -> str:
        """What is answered."""
        return command.main(command.Asked(editor, agent, dry_run, undo), self.environ, colours=colours)

    def refusal(self, editor: str, agent: str | None = None, *, undo: bool = False) -> str:
        """The one line of a setup that must change nothing and leave nothing."""
        before = self.everything()
        with pytest.raises(SetupError) as caught:
            self.setup(editor, agent, undo=undo)
        assert self.everything() == before
        assert "\n" not in str(caught.value)
        return str(caught.value).replace(str(self.home), "~")

    def everything(self) -> dict[str, tuple[int, bytes | str]]:
        """Each file, directory and link with its mode and what is in it."""
        return {
            str(path): (path.lstat().st_mode, _content(path)) for path in self.home.rglob("*") if path not in self.kept
        }

    def typed(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command, as it is installed."""
        return subprocess.run(
            [sys.executable, "-m", "acp_proxy", "setup", *arguments],
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )


def _content(path: Path) -> bytes | str:
    if path.is_symlink():
        return str(path.readlink())
    return path.read_bytes() if stat.S_ISREG(path.stat().st_mode) else b""
