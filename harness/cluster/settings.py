"""Files of settings for the programs of a cluster. Times are in seconds, and may be what a measurement varies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Only a crash of the machine would lose, and none is meant: `kill -9` leaves what the system has taken.
_QUICK = {"fsync": "off", "full_page_writes": "off"}
_TRUST = ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust", "local all all trust"]


@dataclass(frozen=True, slots=True)
class Times:
    """The settings that decide how long a failover takes."""

    ttl: int = 20  # Patroni: how long a leader that says nothing stays one
    loop_wait: int = 2
    retry_timeout: int = 5
    server_login_retry: float = 1  # PgBouncer: after a connection that failed
    check_every: float = 1  # haproxy
    fails: int = 2  # checks that fail until a server is down


DEFAULT = Times()


def patroni(
    name: str,
    *,
    api: int,
    port: int,
    reached_by: int,
    etcd: int,
    data: Path,
    binaries: Path,
    times: Times,
    synchronous: bool,
) -> str:
    """Of one member: `reached_by` is the port by which other members reach its database. JSON is YAML, too."""
    user = {"username": "owner", "password": "secret"}
    common: dict[str, Any] = {
        "ttl": times.ttl,
        "loop_wait": times.loop_wait,
        "retry_timeout": times.retry_timeout,
        "maximum_lag_on_failover": 1 << 30,
        "check_timeline": True,
        "synchronous_mode": synchronous,
        "postgresql": {
            "use_pg_rewind": True,
            "use_slots": True,
            "parameters": {
                **_QUICK,
                "wal_level": "replica",
                "wal_log_hints": "on",
                "hot_standby": "on",
                "max_connections": 100,
                "max_wal_senders": 8,
                "wal_keep_size": "256MB",
                "wal_sender_timeout": "5s",
                "wal_receiver_timeout": "5s",
                "shared_buffers": "32MB",
            },
        },
    }
    member = {
        "scope": "acp-proxy",
        "name": name,
        "restapi": {"listen": f"127.0.0.1:{api}", "connect_address": f"127.0.0.1:{api}"},
        "etcd3": {"host": f"127.0.0.1:{etcd}"},
        "bootstrap": {
            "dcs": common,
            "initdb": [{"encoding": "UTF8"}, "no-sync", {"auth": "trust"}],
            "pg_hba": _TRUST,
        },
        "postgresql": {
            "listen": f"127.0.0.1:{port}",
            "connect_address": f"127.0.0.1:{reached_by}",
            "data_dir": str(data),
            "bin_dir": str(binaries),
            "pg_hba": _TRUST,
            "remove_data_directory_on_rewind_failure": True,
            "remove_data_directory_on_diverged_timelines": True,
            "parameters": {"unix_socket_directories": ""},
            "authentication": {"superuser": user, "replication": user, "rewind": user},
        },
    }
    return json.dumps(member, indent=1)


def haproxy(port: int, members: Mapping[int, int], times: Times) -> str:
    """Leads to whichever member is the primary; `members` are ports of databases with those of their Patronis."""
    every = f"{times.check_every * 1000:.0f}ms"
    servers = [
        f"    server m{database} 127.0.0.1:{database} check port {api}" for database, api in sorted(members.items())
    ]
    return "\n".join(
        [
            "defaults",
            "    mode tcp",
            "    timeout connect 2s",
            "    timeout client 30m",
            "    timeout server 30m",
            "    timeout check 2s",
            "listen primary",
            f"    bind 127.0.0.1:{port}",
            "    option httpchk OPTIONS /primary",
            "    http-check expect status 200",
            f"    default-server inter {every} fall {times.fails} rise 1 on-marked-down shutdown-sessions",
            *servers,
            "",
        ]
    )


def pgbouncer(port: int, server: int, times: Times) -> str:
    return f"""\
[databases]
* = host=127.0.0.1 port={server} user=owner
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
server_login_retry = {times.server_login_retry}
server_connect_timeout = 3
ignore_startup_parameters = extra_float_digits
"""


def etcd(directory: Path, client: int, peer: int) -> Sequence[str]:
    """Options of the command."""
    here, there = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    return [
        f"--data-dir={directory}",
        f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}",
        f"--listen-peer-urls={there}",
        f"--initial-advertise-peer-urls={there}",
        f"--initial-cluster=default={there}",
        "--logger=zap",
    ]
