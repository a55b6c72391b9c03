"""Whose budgets are shown to whom: the subject that a command is asked by."""

from __future__ import annotations

import os
from pathlib import Path

from acp_proxy.config import Config
from acp_proxy.core.scope import Subject
from acp_proxy.project import project_of


def own_subject(config: Config, cwd: Path) -> Subject:
    """Who asks, with no session yet and no model chosen."""
    identity = config.identity
    project = identity.project or project_of(cwd)
    agent = config.run.agent or ""
    return Subject(identity.organisation, identity.user, identity.team, project, os.uname().nodename, agent)
