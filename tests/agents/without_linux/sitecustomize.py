"""On PYTHONPATH it takes from a Python process what only Linux has: as near to macOS as Linux comes.

Pipes, signals and ps stay Linux's own.
"""

from __future__ import annotations

import os
import select
import selectors
import socket
import sys
from collections.abc import Callable
from typing import Any

ONLY_LINUX = {
    os: ("pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate", "sched_getaffinity", "sched_yield"),
    select: ("EPOLLIN", "EPOLLOUT", "EPOLLRDHUP", "epoll"),
    socket: ("MSG_NOSIGNAL",),
}


def _hidden(path: object) -> bool:
    return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith("/proc")


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and _hidden(arguments[0]):
        raise FileNotFoundError(2, os.strerror(2), arguments[0])
    if event == "subprocess.Popen" and arguments[0] == "/bin/ps" and "WITHOUT_PS" in os.environ:
        raise PermissionError(1, os.strerror(1), "/bin/ps")


def _blind(call: Callable[..., Any]) -> Callable[..., Any]:
    """For what no audit hook is asked about."""

    def blinded(path: Any, *rest: Any, **options: Any) -> Any:
        if _hidden(path):
            raise FileNotFoundError(2, os.strerror(2), path)
        return call(path, *rest, **options)

    return blinded


for module, names in ONLY_LINUX.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
selectors.DefaultSelector = selectors.PollSelector  # type: ignore[assignment,misc]  # as on macOS
os.readlink, os.stat = _blind(os.readlink), _blind(os.stat)
sys.addaudithook(_look)
sys.platform = os.environ.get("PLATFORM", "darwin")
