"""The subject on whose behalf a command is run, and the directory in which."""

from __future__ import annotations

import os
from pathlib import Path

from acp_proxy.config import Config
from acp_proxy.core.scope import Subject


def own_subject(config: Config, cwd: Path | None) -> Subject:
    """The user of the command as a subject without session and model; without `cwd` also without project."""
    identity = config.identity
    project = identity.project or (_project_of(cwd) if cwd else None)
    agent = config.run.agent or ""
    return Subject(identity.organisation, identity.user, identity.team, project, os.uname().nodename, agent)


def here() -> Path | None:
    """The working directory; None where it was removed meanwhile."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _project_of(cwd: Path) -> str:
    from acp_proxy.system.project import project_of  # what reads git's files

    return project_of(cwd)
