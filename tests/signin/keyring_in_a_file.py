"""A keyring of the package of that name: in the file that KEYRING_FILE names, for machines without a desktop."""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class Keyring(KeyringBackend):
    priority = 1.0

    def get_password(self, service: str, username: str) -> str | None:
        return self._all().get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._put(self._all() | {f"{service} {username}": password})

    def delete_password(self, service: str, username: str) -> None:
        found = self._all()
        if found.pop(f"{service} {username}", None) is None:
            raise PasswordDeleteError(username)
        self._put(found)

    def _all(self) -> dict[str, str]:
        path = Path(os.environ["KEYRING_FILE"])
        found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def _put(self, found: dict[str, str]) -> None:
        Path(os.environ["KEYRING_FILE"]).write_text(json.dumps(found))
