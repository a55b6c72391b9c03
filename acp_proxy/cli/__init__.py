"""The command line: from what was typed to an exit status; errors of the user become one line and a status.

All but `run`, which `start.py` does before anything here is imported.
"""

from __future__ import annotations

import errno
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from acp_proxy.cli import options
from acp_proxy.cli.commands import COMMANDS, command_of, parser
from acp_proxy.config import ConfigError
from acp_proxy.ledger import LedgerError
from acp_proxy.system.errors import UsageError
from acp_proxy.text.charset import make_do
from acp_proxy.text.figures import clean

USAGE_STATUS = 2


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 where a check failed, 2 for what the user must correct, 3 where a budget says no.

    130 after Ctrl-C, as a shell has it.
    """
    _replace_closed()
    make_do(sys.stdout)
    try:
        asked = sys.argv[1:] if argv is None else argv
        words = _helped(asked)
        arguments = parser(only=words[0] if words and words[0] in COMMANDS else None).parse_args(words)
        arguments.words = asked
        status = _answered(arguments)
        sys.stdout.flush()
    except (UsageError, ConfigError, LedgerError) as error:
        sys.stderr.write(f"acp-proxy: {clean(str(error))}\n")
        return USAGE_STATUS
    except BrokenPipeError:  # `acp-proxy report | head`
        _drop_the_rest()
        return 0
    except OSError as error:  # `acp-proxy report > FILE`
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or error.filename is not None:
            raise
        _drop_the_rest()
        sys.stderr.write(f"acp-proxy: the answer cannot be written: {os.strerror(error.errno).lower()}\n")
        return USAGE_STATUS
    except KeyboardInterrupt:
        return 130
    return status


def _answered(arguments: Namespace) -> int:
    """The exit status. Raises LedgerError for what is the fault of a ledger that another program has changed."""
    try:
        if arguments.command is None:
            from acp_proxy.cli import overview

            return overview.main(arguments)
        return command_of(arguments.command).main(arguments)
    except (UsageError, ConfigError, LedgerError, OSError):
        raise
    except Exception as error:
        from acp_proxy.ledger.sqlite.soundness import fault_in

        for url in {options.config(arguments).ledger.url, *options.copied(arguments)}:
            if fault := fault_in(url):
                raise fault from error
        raise


def _replace_closed() -> None:
    """A daemon may have fd 1 and 2 closed, for which Python has None: output there is discarded."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115  until the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115  as well


def _drop_the_rest() -> None:
    """Discards buffered output: the interpreter would try to write it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _helped(asked: Sequence[str]) -> Sequence[str]:
    """`help COMMAND` is `COMMAND --help`."""
    return [*asked[1:], "--help"] if asked[:1] == ["help"] else asked
