"""The command line of `run`, and what is known, loaded and started when."""

from __future__ import annotations

import contextlib
import os
import platform
import pty
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from acp_proxy import config
from acp_proxy.config.layers import FLAGS as CONFIGURED
from acp_proxy.startup import start
from acp_proxy.startup.start import FLAGS, VALUED, HelpWanted, parse
from acp_proxy.system.errors import UsageError
from tests.agents.client import line, python, running

COMMAND = (sys.executable, "-m", "acp_proxy")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has configured nothing."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("ACP_PROXY_", "XDG_"))}
    return bare | {"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}


def outcome(*arguments: str, env: dict[str, str], **options: Any) -> tuple[int, bytes, bytes]:
    """Exit status, stdout and stderr of a command whose stdin is at its end."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env=env,
        timeout=30,
        **options,
    )
    return done.returncode, done.stdout, done.stderr


# Ctrl-C, as somebody types it who need not wait for a prompt with `status` in it.

AT_AN_IMPORT = """
import os, signal, sys

class Interrupted:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupted)
"""


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("report", "acp_proxy.startup.lean_imports"),
        ("report", "acp_proxy.cli"),
        ("report", "acp_proxy.report"),
        ("status", "acp_proxy.status.cache"),
        ("status", "acp_proxy.status.command"),
    ],
)
def test_who_is_interrupted_while_it_is_imported_says_nothing(
    home: dict[str, str], tmp_path: Path, command: str, module: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(AT_AN_IMPORT)
    environ = home | {"PYTHONPATH": f"{tmp_path}:{home['PYTHONPATH']}", "INTERRUPTED_AT": module}
    assert outcome(command, env=environ) == (130, b"", b"")


# Reading the command line.


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("run -- agent", {}),
        ("-- agent", {}),
        ("run --user alice --team=core -- agent", {"user": "alice", "team": "core"}),
        ("--config f --ledger=sqlite:///x run -- agent", {"config": "f", "ledger": "sqlite:///x"}),
        ("--config f -- agent", {"config": "f"}),
        ("--no-summary -- agent", {"no_summary": "true"}),
        ("run --log-level debug --log f --budget 3 -- agent", {"log_level": "debug", "log": "f", "budget": "3"}),
        ("run --project= --agent -x -- agent", {"project": "", "agent": "-x"}),
        ("run --user a --user b -- agent", {"user": "b"}),
    ],
)
def test_options_may_stand_before_the_agent_with_a_space_or_an_equals_sign(
    arguments: str, options: dict[str, str]
) -> None:
    assert parse(arguments.split()) == (options, ["agent"])


def test_every_option_of_run_is_one_of_the_configuration() -> None:
    """They are told twice: the configuration is not imported before the agent runs."""
    options = {option[2:].replace("-", "_") for option in (*VALUED, *FLAGS)}
    assert options - {"config"} <= CONFIGURED.keys()


def test_everything_after_the_dashes_belongs_to_the_agent() -> None:
    agent = ["agent", "--user", "x", "--", "-h", "run", ""]
    assert parse(["run", "--", *agent]) == ({}, agent)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("run", "no agent given"),
        ("run --", "no agent given"),
        ("run --user x", "no agent given"),
        ("run --xyzzy=3 -- agent", "unknown option --xyzzy; usage: "),
        ("run -v -- agent", "unknown option -v; usage: "),
        ("run --bugdet 5 -- agent", r"unknown option --bugdet; did you mean --budget\?$"),
        ("run --log-lvl=debug -- agent", r"unknown option --log-lvl; did you mean --log-level\?$"),
        ("run --no-summary=yes -- agent", "--no-summary takes no value; usage: "),
        ("run --user", "--user needs a value"),
        ("run --user -- agent", "--user needs a value"),
        ("run --user --no-summary -- agent", "--user needs a value"),
        ("run --user --team=core -- agent", "--user needs a value"),
        ("run --user --help", "--user needs a value"),
        ("--config", "--config needs a value"),
        ("run agent", "the agent's command must follow --"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused_in_one_line(arguments: str, complaint: str) -> None:
    with pytest.raises(UsageError, match="^" + complaint) as refused:
        parse(arguments.split())
    assert "\n" not in str(refused.value)


def test_an_empty_word_is_no_agent() -> None:
    """As `"$AGENT"` is where nobody has set the variable."""
    for agent in (["--", ""], ["run", "--", ""], ["run", "--", "", "--acp"]):
        with pytest.raises(UsageError, match=r"^no agent given"):
            parse(agent)


@pytest.mark.parametrize("arguments", ["", "report", "--config f report --by day", "--ledger x doctor", "--help", "-h"])
def test_other_commands_are_left_to_their_own_parser(arguments: str) -> None:
    assert parse(arguments.split()) is None


@pytest.mark.parametrize("arguments", ["run -h", "run --user x --help", "run --help -- agent"])
def test_help_is_wanted_before_the_agent_is(arguments: str) -> None:
    with pytest.raises(HelpWanted):
        parse(arguments.split())


# Starting the agent.


def test_run_relays_and_returns_the_agents_status(home: dict[str, str]) -> None:
    status, out, err = outcome("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3", env=home)
    assert (status, out, err) == (3, b"out\n", b"err\n")


def test_an_agent_in_the_home_directory_may_be_written_as_editors_allow_it(home: dict[str, str]) -> None:
    agent = Path(home["HOME"]) / "my-agent"
    agent.write_text("#!/bin/sh\necho ~/started\n")
    agent.chmod(0o755)
    assert outcome("run", "--", "~/my-agent", env=home)[:2] == (0, f"{home['HOME']}/started\n".encode())


def test_an_agent_that_is_not_found_is_said_so_with_127(home: dict[str, str]) -> None:
    status, out, err = outcome("run", "--", "no-such-agent", "--flag", env=home)
    assert (status, out, err) == (127, b"", b"acp-proxy: agent not found: no-such-agent\n")


@pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="calls have other numbers")
def test_a_sandbox_that_no_event_loop_can_live_in_is_told_in_one_line_and_no_agent_stays(home: dict[str, str]) -> None:
    sandbox = (sys.executable, str(Path(__file__).parents[1] / "agents/refusing.py"), "socketpair")
    run = subprocess.run(  # which waits until nobody has its stderr any more
        [*sandbox, *COMMAND, "run", "--", "sleep", "100"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env=home,
        timeout=30,
    )
    assert (run.returncode, run.stdout) == (126, b"")
    assert run.stderr == b"acp-proxy: not relayed: the event loop needs socketpair: Operation not permitted\n"


def test_a_command_line_in_one_word_is_told_what_is_wrong_with_it(home: dict[str, str]) -> None:
    _, _, err = outcome("run", "--", "npx -y my-agent", env=home)
    assert err == b"acp-proxy: agent not found: npx -y my-agent; its arguments must be words of their own\n"


def test_what_cannot_be_printed_is_shown_on_the_one_line(home: dict[str, str]) -> None:
    status, _, err = outcome("run", "--", "my-agent\n", env=home)
    assert (status, err) == (127, b"acp-proxy: agent not found: my-agent\\n\n")
    status, _, err = outcome("run", "--\x1b[2J", "--", "my-agent", env=home)
    assert (status, err.partition(b";")[0]) == (2, b"acp-proxy: unknown option --\\x1b[2J")


def test_a_parent_that_ignores_its_children_hides_no_status_and_the_agent_inherits_that(home: dict[str, str]) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    tells = "import signal, sys; sys.exit(3 if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 4)"
    assert outcome("run", "--", *python(tells), env=home, preexec_fn=ignore)[0] == 3
    assert outcome("run", "--", "no-such-agent", env=home, preexec_fn=ignore)[0] == 127


@pytest.mark.skipif(sys.platform != "linux", reason="nothing else lets a process adopt")
def test_what_an_agent_leaves_behind_is_ours_however_soon_that_is(home: dict[str, str]) -> None:
    """What is done after the start comes too late here: it waits until the agent has ended."""
    start = """
import os, sys
from acp_proxy.startup.start import main
def hook(event, arguments):
    if event == "ctypes.call_function" and arguments[1][0] == 36:  # PR_SET_CHILD_SUBREAPER
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            pass
sys.addaudithook(hook)
main(sys.argv[1:])
"""
    agent = """
import os
relay, (left, leaving) = os.getppid(), os.pipe()
if not (child := os.fork()):
    if os.fork():
        os._exit(0)
    os.read(left, 1)
    os.write(1, b"%d" % (os.getppid() == relay))
    os._exit(0)
os.waitpid(child, 0)
os.write(leaving, b".")
"""
    command = (sys.executable, "-c", start, "run", "--", *python(agent))
    assert subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, env=home).stdout == b"1"


def test_an_agent_that_is_not_executable_is_said_so_with_126(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("not a program")
    status, out, err = outcome("run", "--", str(tmp_path / "agent"), env=home)
    assert (status, out) == (126, b"")
    assert err == f"acp-proxy: agent cannot be executed: {tmp_path}/agent: Permission denied\n".encode()


def test_too_few_descriptors_are_told_in_one_line_before_the_agent_is_started(
    home: dict[str, str], tmp_path: Path
) -> None:
    few = f"ulimit -n 12; exec {shlex.join([*COMMAND, 'run', '--', 'touch', str(tmp_path / 'started')])}"
    done = subprocess.run(
        ["sh", "-c", few], stdin=subprocess.DEVNULL, capture_output=True, check=False, env=home, timeout=30
    )
    assert (done.returncode, done.stdout) == (126, b"")
    assert re.fullmatch(
        rb"acp-proxy: agent not started: \d file descriptors are free, and 21 are needed; ulimit -n allows more\n",
        done.stderr,
    )
    assert not (tmp_path / "started").exists()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs the right to mount")
def test_without_dev_null_no_agent_is_started_and_that_is_told_in_one_line(home: dict[str, str]) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")  # root in a container may not have it
    bare = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev; exec "$@"', "sh", *COMMAND)
    done = subprocess.run([*bare, "run", "--", "true"], env=home, capture_output=True, check=False, timeout=30)
    said = b"acp-proxy: agent not started: /dev/null: No such file or directory\n"
    assert (done.returncode, done.stdout, done.stderr) == (126, b"", said)


def test_as_few_descriptors_as_are_needed_do_for_a_relay_between_sockets(home: dict[str, str]) -> None:
    with contextlib.ExitStack() as ends:
        client, stdin = (ends.enter_context(end) for end in socket.socketpair())
        stdout, reader = (ends.enter_context(end) for end in socket.socketpair())
        client.sendall(b'{"x":1}\n')
        client.shutdown(socket.SHUT_WR)
        enough = f"ulimit -n {3 + 21}; exec {shlex.join([*COMMAND, 'run', '--', 'cat'])}"
        done = subprocess.run(
            ["sh", "-c", enough],
            stdin=stdin.fileno(),
            stdout=stdout.fileno(),
            stderr=subprocess.PIPE,
            check=False,
            env=home,
            timeout=30,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert reader.recv(100) == b'{"x":1}\n'


def test_usage_errors_are_one_line_with_status_2(home: dict[str, str]) -> None:
    status, out, err = outcome("run", "--bogus", "--", "touch", "started", env=home)
    assert (status, out) == (2, b"")
    assert err.startswith(b"acp-proxy: unknown option --bogus;")
    assert err.count(b"\n") == 1


@pytest.mark.parametrize("how", ["file", "file, XDG is relative", "environment", "--log-level", "--config", "--ledger"])
def test_a_configuration_in_error_is_told_before_the_agent_is_started(
    home: dict[str, str], tmp_path: Path, how: str
) -> None:
    options = []
    match how:
        case "file" | "file, XDG is relative":
            home |= {} if how == "file" else {"XDG_CONFIG_HOME": "relative"}
            (tmp_path / ".config/acp-proxy").mkdir(parents=True)
            (tmp_path / ".config/acp-proxy/config.toml").write_text("[run]\nnonsense = 1\n")
        case "environment":
            home |= {"ACP_PROXY_NONSENSE": "1"}
        case "--ledger":
            options = [how, "postgresql://nonsense:x/db"]
        case option:
            options = [option, "nonsense"]
    status, out, err = outcome("run", *options, "--", "touch", "started", env=home, cwd=tmp_path)
    assert (status, out) == (2, b"")
    assert err.startswith(b"acp-proxy: ")
    assert err.count(b"\n") == 1
    assert (how.encode() if how in ("--log-level", "--ledger") else b"nonsense") in err.lower()
    assert not (tmp_path / "started").exists()


def test_the_administrators_file_is_looked_for_before_the_agent_runs_where_it_is_read() -> None:
    assert Path(start.ADMIN_FILE) == config.ADMIN_FILE


@pytest.mark.parametrize("option", ["--team=", "--user=a\nb", f"--project={'p' * 300}", "--log= "])
def test_a_name_in_error_is_told_before_the_agent_is_started(home: dict[str, str], tmp_path: Path, option: str) -> None:
    status, out, err = outcome("run", option, "--", "touch", "started", env=home, cwd=tmp_path)
    assert (status, out) == (2, b"")
    assert err.startswith(f"acp-proxy: {option.partition('=')[0]}: expected 1 to ".encode())
    assert not (tmp_path / "started").exists()


def test_the_agent_inherits_environment_directory_and_arguments(home: dict[str, str], tmp_path: Path) -> None:
    agent = python("import os, sys; print(os.getcwd(), os.environ['KEY'], sys.argv[1:])")
    status, out, _ = outcome("--", *agent, "a b", "", "--", env=home | {"KEY": "välue"}, cwd=tmp_path)
    assert (status, out) == (0, f"{tmp_path} välue ['a b', '', '--']\n".encode())


def test_nothing_heavy_is_loaded_before_the_agent_runs() -> None:
    root = Path(__file__).parents[2]
    code = f"import sys; sys.path.insert(0, {str(root)!r}); import acp_proxy.__main__; print(*sys.modules)"
    bare, ours = (
        set(subprocess.check_output([sys.executable, "-I", "-S", "-c", text], text=True, timeout=30).split())
        for text in ("import sys; print(*sys.modules)", code)
    )
    assert ours - bare <= {
        "__future__", "acp_proxy", "acp_proxy.__main__", "acp_proxy.system.spawn", "acp_proxy.startup.start",
        "acp_proxy.startup", "acp_proxy.system", "acp_proxy.system.errors",
        "abc", "stat", "_stat", "posixpath", "genericpath", "os.path", "os", "_abc", "_collections_abc", "errno",
    }  # fmt: skip


def test_the_agent_reads_its_first_line_long_before_the_relay_is_up(home: dict[str, str]) -> None:
    """The pipe is there from the start: what the client says early is not lost."""
    with running(*COMMAND, "--", "cat", env=home) as relay:
        relay.stdin.write(b"early\n")
        assert line(relay.stdout) == b"early\n"


# A terminal on both sides.


def in_terminal(*arguments: str, env: dict[str, str]) -> tuple[int, bytes]:
    """Exit status and what the terminal shows."""
    terminal, ours = pty.openpty()
    with os.fdopen(ours, "rb+", buffering=0) as end:
        process = subprocess.Popen([*COMMAND, *arguments], stdin=end, stdout=end, stderr=end, env=env)
    shown = b""
    with os.fdopen(terminal, "rb", buffering=0) as screen, contextlib.suppress(OSError):  # EIO when all have left
        while data := screen.read(4096):
            shown += data
    return process.wait(60), shown.replace(b"\r\n", b"\n")


def test_between_terminals_the_agent_takes_our_place(home: dict[str, str]) -> None:
    script = "test -t 0 && test -t 1 && grep SigIgn /proc/self/status; exit 4"
    status, shown = in_terminal("run", "--", "sh", "-c", script, env=home)
    said, _, ignored = shown.partition(b"SigIgn:")
    assert (status, said) == (4, b"acp-proxy: terminal: not relayed, not metered\n")
    assert int(ignored, 16) & 0x7FFF_FFFF == 0  # Python 3.13.0 starts programs with 32 and 33 ignored


def test_between_terminals_the_configuration_is_checked_all_the_same(home: dict[str, str]) -> None:
    status, shown = in_terminal("run", "--log-level", "x", "--", "echo", "started", env=home)
    assert status == 2
    assert shown.startswith(b"acp-proxy: --log-level:")
    assert b"started" not in shown


def test_between_terminals_an_agent_that_is_not_found_gives_127(home: dict[str, str]) -> None:
    status, shown = in_terminal("--", "no-such-agent", env=home)
    assert status == 127
    assert shown.endswith(b"acp-proxy: agent not found: no-such-agent\n")


def test_an_interrupt_while_we_start_leaves_no_traceback(home: dict[str, str]) -> None:
    agent = python("import os, signal; os.kill(os.getppid(), 2); signal.pause()")  # not until its stdin ends
    with running(*COMMAND, "--", *agent, env=home) as relay:
        assert relay.wait() in (-signal.SIGINT, 128 + signal.SIGTERM)
        assert b"Traceback" not in relay.stderr.read()
