"""`python -I -S timed.py COMMAND...`: runs a command whose output goes nowhere, and prints as JSON what it took.

A process of its own, and a small one: what the system calls a child's largest memory is never less than its parent's.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main(command: list[str]) -> int:
    """The command's exit status."""
    nowhere = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    began = time.perf_counter()
    _, status, used = os.wait4(os.posix_spawn(command[0], command, os.environ, file_actions=[nowhere]), 0)
    took = time.perf_counter() - began
    costs = {"cpu ms": (used.ru_utime + used.ru_stime) * 1e3, "ms": took * 1e3, "MB": used.ru_maxrss / 1024}
    sys.stdout.write(json.dumps(costs))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
