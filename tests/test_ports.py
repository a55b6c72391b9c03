"""Ports that tests let others listen on are not given twice, by whomever."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.ports import free_port

ROOT = Path(__file__).parents[1]
ASKS = "from harness.ports import free_port; print(*[free_port() for _ in range(50)], flush=True); input()"


def test_processes_at_the_same_time_get_different_ports_and_none_is_given_again_at_once() -> None:
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen([sys.executable, "-c", ASKS], cwd=ROOT, stdin=pipe, stdout=pipe, text=True) for _ in range(3)
    ]
    given = [free_port() for _ in range(50)]
    for process in processes:
        assert process.stdout
        given += map(int, process.stdout.readline().split())
    for process in processes:
        process.communicate("\n")
    assert len(set(given)) == len(given) == 200


def test_a_port_on_which_somebody_listens_is_not_given() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        taken = listener.getsockname()[1]
        assert taken not in [free_port() for _ in range(150)]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_port_is_given_that_the_system_gives_to_connections() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    if lowest <= 15_000:
        pytest.skip("this system was told to give connections nearly every port")
    assert free_port() < lowest
