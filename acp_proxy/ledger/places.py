"""The places of ledger and journals: URLs, platform directories, and file systems that may not hold them.

Creates directories only in `private_directory`; opens no file of its own but the kernel's table of mounts.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from errno import ENOTDIR
from pathlib import Path

from acp_proxy.core.digest import digest
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.hub_address import canonical, is_hub
from acp_proxy.ledger.owners import Owner
from acp_proxy.system.directories import HOW_SYNCHRONOUS, SYNCHRONOUS, state_directory

POSTGRES_SCHEMES = ("postgresql", "postgres")
EXPECTED = "expected sqlite:///PATH, postgresql://HOST/DATABASE or https://HUB"

# Both SQLite's WAL and the journal need locks and shared memory that hold for everybody who sees the file. They do not
# where other machines see it, too: on a server, or on the host of a virtual machine, as with virtiofs, where a WAL was
# seen to break within a minute. New ones of that kind come up each year, local ones do not.
LOCAL_FILE_SYSTEMS = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "reiser4", "reiserfs", "simfs", "xfs", "zfs"}
    | {"exfat", "fuseblk", "hfsplus", "iso9660", "jffs2", "minix", "msdos", "ntfs", "ntfs3", "ubifs", "udf", "vfat"}
    | {"erofs", "ramfs", "rootfs", "squashfs", "tmpfs"}
    | {"lxfs", "wslfs"}  # the first WSL's own
    | {"apfs", "hfs", "ufs"}  # macOS
    | {"autofs"}  # what is mounted there is told by a line of its own
    # What is below these nobody can tell, but it is one machine's: a container writes to a layer of its own.
    | {"aufs", "ecryptfs", "overlay", "overlayfs"}
    | {"fuse.bindfs", "fuse.encfs", "fuse.fuse-overlayfs", "fuse.gocryptfs"}
)
_TOLD_BY_MOUNT = r".* on (/.*) \(([^(), ]+)(?:, [^()]*)?\)"  # macOS: `DEVICE on POINT (TYPE, FLAG...)`


def sqlite_path(url: str) -> Path:
    """The absolute path that a `sqlite:///PATH` URL means. Raises LedgerError for any other URL, in one line."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise LedgerError(f"ledger URL without a scheme, {EXPECTED}")
    if scheme != "sqlite":
        raise LedgerError(f"ledger URL of unknown scheme {scheme!r}, {EXPECTED}")
    rest, asked, how = rest.partition(SYNCHRONOUS)
    if asked and how not in HOW_SYNCHRONOUS:
        raise LedgerError("ledger URL: expected synchronous=full or synchronous=normal after the path")
    path = rest.removeprefix("/")
    if path == rest or not path or path.endswith("/") or "\0" in path:
        raise LedgerError(f"ledger URL without a file after sqlite:///, {EXPECTED}")
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise LedgerError(f"ledger URL {url!r}: {error}") from error


def is_synchronous(url: str) -> bool:
    """Whether a ledger in SQLite is to have each transaction on the disk before it counts as written."""
    return url.partition(SYNCHRONOUS)[2] == "full"


def canonical_url(url: str) -> str:
    """The canonical URL of a ledger: absolute, without credentials or options. Raises LedgerError."""
    if is_hub(url):
        return canonical(url)
    if not is_postgres(url):
        return sqlite_url(sqlite_path(url))
    from acp_proxy.ledger.postgres_address import Address

    return Address.of(url).url


def is_postgres(url: str) -> bool:
    return url.partition("://")[0] in POSTGRES_SCHEMES


def is_shared(url: str) -> bool:
    """Whether others read and write it too: a team's, in PostgreSQL or by a hub."""
    return is_postgres(url) or is_hub(url)


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def journal_directories(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The directories for journals, best first."""
    state = state_directory(environ) / "journal"
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    return (state, Path(runtime) / "acp-proxy") if Path(runtime).is_absolute() else (state,)


def journal_name(owner: Owner) -> str:
    """The prefix of the name of a process's journal."""
    return digest(f"{owner.host} {owner.pid} {owner.started}".encode(), 8)


def journal_of(owner: Owner, directories: Iterable[Path]) -> Path | None:
    """The journal that a process keeps or has left; None where there is none."""
    found = (path for directory in directories for path in directory.glob(f"{journal_name(owner)}-*.journal"))
    return next(found, None)


def private_directory(path: Path) -> None:
    """Make a directory and its missing parents 0700; one that is there stays as it is. Raises OSError."""
    if path.is_dir():
        return
    private_directory(path.parent)
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:  # the system says what is in the way, and not what is wrong with it
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(path)) from error


def foreign_file_system(path: Path, mounts: str | None = None) -> str | None:
    """The type of the file system that `path` is (or would be) on, unless it is known as a local one.

    None also where nothing can be known.

    `mounts` is text like /proc/self/mounts, or what macOS's mount(8) prints; the system's when it is not given.
    """
    best, kind = "", ""
    for line in (_mounts() if mounts is None else mounts).splitlines():
        if line.endswith(")") and (told := re.fullmatch(_TOLD_BY_MOUNT, line)):
            point, found = told.groups()
        else:
            _, point, found, *_ = (*map(_unescaped, line.split(" ")), "", "", "")
        # The later of two mounts on one point hides the earlier.
        if point and len(point) >= len(best) and _is_below(str(path), point):
            best, kind = point, found
    return kind if kind and kind not in LOCAL_FILE_SYSTEMS else None


def _mounts() -> str:
    """Empty where nothing can be known."""
    try:
        if sys.platform == "darwin":
            import subprocess

            told = subprocess.run(["/sbin/mount"], stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout
            return told.decode("utf-8", "surrogateescape")
        else:  # noqa: RET505  what a type checker for macOS leaves out
            return Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _is_below(path: str, point: str) -> bool:
    return point in ("/", path) or path.startswith(f"{point}/")


def _unescaped(field: str) -> str:
    """A field of the table of mounts: space, tab, newline and backslash are written as `\\040` and so on."""
    if "\\" not in field:
        return field
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
