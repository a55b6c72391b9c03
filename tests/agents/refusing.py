"""Becomes a command to which the kernel refuses some calls, as a sandbox does: `refusing.py NAME,... COMMAND`.

For Linux on x86-64, where calls have these numbers.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

NUMBERS = {"socketpair": 53, "epoll_create": 213, "eventfd2": 290, "epoll_create1": 291}
_SET_SECCOMP, _SET_NO_NEW_PRIVS, _FILTER = 22, 38, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def refuse(names: list[str]) -> None:
    """With EPERM, to this process and all that it starts."""
    steps = [(_LOAD, 0, 0, 0)]  # the call's number
    for name in names:
        steps += [(_JUMP_IF_EQUAL, 0, 1, NUMBERS[name]), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.cast(code, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "no filter can be set")


if __name__ == "__main__":
    refuse(sys.argv[1].split(","))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606  no shell is wanted
