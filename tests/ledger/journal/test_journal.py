"""Journals on a real file system: kept over a kill, taken over once, and given up where none can be had."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger import LedgerUnavailableError, Query, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.journal.records import Contents, read_journal
from acp_proxy.ledger.journal.recovery import journals_found, recover
from acp_proxy.ledger.journal.writer import FIRST_SIZE, LARGEST_SIZE, Journal, open_journal
from acp_proxy.ledger.places import foreign_file_system, journal_directories
from acp_proxy.ledger.sqlite.ledger import SqliteLedger
from harness.rows import line, row
from tests.ledger.processes import Process
from tests.ledger.warned import Warnings


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal"


def ids(ledger: BudgetLedger) -> list[str]:
    return [found.entry.id for found in ledger.rows(Query())]


def journals(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def abandoned(directory: Path, url: str, *names: str) -> Path:
    """A journal with rows whose owner has gone."""
    journal = open_journal([directory], url, Warnings())
    for name in names:
        assert journal.write(row(id=name)) is not None
    journal.close()
    assert journal.path
    return journal.path


class TestWriting:
    def test_the_file_is_private_allocated_and_removed_when_all_is_done(
        self, directory: Path, warnings: Warnings
    ) -> None:
        journal = open_journal([directory], "sqlite:////l", warnings)
        assert journal.path
        status = journal.path.stat()
        assert stat.S_IMODE(status.st_mode) == 0o600
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert status.st_blocks * 512 >= FIRST_SIZE
        slot = journal.write(row())
        assert slot is not None
        journal.done(slot)
        journal.close()
        assert journals(directory) == []
        assert warnings.told == []

    def test_what_is_not_done_is_left_behind(self, directory: Path) -> None:
        path = abandoned(directory, "sqlite:////l", "a")
        assert journals(directory) == [path]

    def test_space_is_used_again_when_all_is_done(self, directory: Path) -> None:
        with closing(open_journal([directory], "sqlite:////l", Warnings())) as journal:
            first = journal.write(row())
            for _ in range(3000):
                slot = journal.write(row())
                assert slot is not None
                journal.done(slot)
            assert first is not None
            journal.done(first)
            assert journal.write(row()) == first

    def test_a_row_that_is_begun_where_a_done_one_was_is_not_taken_for_a_torn_one(self, directory: Path) -> None:
        with closing(open_journal([directory], "sqlite:////l", Warnings())) as journal:
            slot = journal.write(row())
            assert slot is not None
            journal.done(slot)
            assert journal.path
            data = bytearray(journal.path.read_bytes())
            data[slot + 40] ^= 1  # the first that the next row writes
            assert read_journal(bytes(data)) == Contents("sqlite:////l", (), (), torn=0, unreadable=0)

    def test_it_grows_to_its_bound_and_then_keeps_no_more(self, directory: Path) -> None:
        large = row(line("m" * 100_000))
        with closing(open_journal([directory], "sqlite:////l", Warnings())) as journal:
            slots = []
            while (slot := journal.write(large)) is not None:
                slots.append(slot)
            assert journal.path
            assert LARGEST_SIZE - 500_000 < slots[-1] < LARGEST_SIZE == journal.path.stat().st_size
            for slot in slots:
                journal.done(slot)
            assert journal.write(large) == slots[0]

    def test_rows_written_before_it_grew_are_still_there(self, directory: Path, ledger: BudgetLedger) -> None:
        journal = open_journal([directory], ledger.url, Warnings())
        for number in range(10):
            journal.write(row(line("m" * 100_000), id=str(number)))
        journal.close()
        assert recover(ledger, [directory], Warnings()) == 10
        assert ids(ledger) == [str(number) for number in range(10)]

    def test_a_row_that_no_ledger_can_keep_is_not_kept(self, directory: Path) -> None:
        with closing(open_journal([directory], "sqlite:////l", Warnings())) as journal:
            assert journal.write(row(line("\ud800"))) is None
            assert journal.write(row(line(input=2**70))) is None

    def test_after_its_end_it_keeps_nothing_and_complains_of_nothing(self, directory: Path) -> None:
        journal = open_journal([directory], "sqlite:////l", Warnings())
        slot = journal.write(row())
        assert slot is not None
        journal.close()
        journal.close()
        journal.done(slot)
        assert journal.write(row()) is None

    def test_a_child_does_not_inherit_the_lock(self, directory: Path, ledger: BudgetLedger) -> None:
        journal = open_journal([directory], ledger.url, Warnings())
        journal.write(row(id="a"))
        command = [sys.executable, "-c", "print(flush=True); input()"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, close_fds=False) as child:
            assert child.stdout
            child.stdout.readline()
            journal.close()
            assert recover(ledger, [directory], Warnings()) == 1
            child.communicate(b"\n")


class TestPlaces:
    def test_the_second_directory_is_for_when_the_first_cannot_hold_one(
        self, read_only_directory: Path, directory: Path, warnings: Warnings
    ) -> None:
        with closing(open_journal([read_only_directory / "x", directory], "sqlite:////l", warnings)) as journal:
            assert journal.path
            assert journal.path.parent == directory
        assert warnings.told == []

    def test_where_none_can_be_had_it_warns_and_keeps_nothing(
        self, read_only_directory: Path, warnings: Warnings
    ) -> None:
        journal = open_journal([read_only_directory], "sqlite:////l", warnings)
        assert journal.write(row()) is None
        journal.close()
        [(event, fields)] = warnings.told
        assert event == "journal.none"
        assert str(read_only_directory) in str(fields["reasons"])
        assert fields["effect"] == "rows may be lost when the proxy is killed"

    def test_a_disk_too_full_for_it_is_passed_over(self, small_disk: Path, warnings: Warnings) -> None:
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(900 * 1024))
        journal = open_journal([small_disk], "sqlite:////l", warnings)
        ballast.unlink()
        assert journal.path is None
        assert warnings.events == ["journal.none"]
        assert journals(small_disk) == []

    def test_state_counts_first_then_the_runtime_directory(self) -> None:
        environ = {"HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/1"}
        assert journal_directories(environ) == (
            Path("/h/.local/state/acp-proxy/journal"),
            Path("/run/user/1/acp-proxy"),
        )
        assert journal_directories({"HOME": "/h"}) == (Path("/h/.local/state/acp-proxy/journal"),)

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("/srv/x", None),
            ("/home/u/x", "nfs4"),
            ("/home/u/local/x", None),
            ("/home/user2", None),
            ("/mnt/with space/x", "fuse.sshfs"),
            ("/mnt/over", "cifs"),
            ("/mnt/fuse/x", "fuse.portal"),
            ("/var/x", None),
        ],
    )
    def test_file_systems_that_may_be_shared_are_told_by_the_nearest_mount(self, path: str, kind: str | None) -> None:
        mounts = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home/u nfs4 rw 0 0
/dev/sdb1 /home/u/local xfs rw 0 0
me@host:/ /mnt/with\\040space fuse.sshfs rw 0 0
/dev/sdc1 /mnt/over ext4 rw 0 0
//server/share /mnt/over cifs rw 0 0
portal /mnt/fuse fuse.portal rw 0 0
overlay /var overlay rw,lowerdir=/a,upperdir=/b,workdir=/c 0 0
"""
        assert foreign_file_system(Path(path), mounts) == kind

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("/Users/u/x", None),
            ("/Users/net/x", "nfs"),
            ("/Volumes/the share (1)/x", "smbfs"),
            ("/Volumes/old/x", "afpfs"),
            ("/Volumes/My Shared Files/x", "virtiofs"),
            ("/System/Volumes/Data/x", None),
        ],
    )
    def test_they_are_told_by_what_mount_prints_on_macos(self, path: str, kind: str | None) -> None:
        mounts = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse, protect, root data)
map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)
server:/export on /Users/net (nfs)
//me@nas/the%20share on /Volumes/the share (1) (smbfs, nodev, nosuid, mounted by me)
//me@nas/old on /Volumes/old (afpfs, nodev, nosuid, mounted by me)
virtio-fs on /Volumes/My Shared Files (virtiofs, local, noatime)
"""
        assert foreign_file_system(Path(path), mounts) == kind


class TestRecovery:
    def test_a_process_killed_in_the_middle_of_its_work_loses_nothing(
        self, directory: Path, ledger: BudgetLedger, warnings: Warnings
    ) -> None:
        process = Process("journal", ledger.url, str(directory), "50")
        process.until_ready()
        process.kill()
        assert recover(ledger, [directory], warnings) == 49  # the first was done before
        assert ids(ledger) == [f"row-{number:03}" for number in range(1, 50)]
        assert journals(directory) == []
        assert recover(ledger, [directory], warnings) == 0
        assert warnings.told == []

    def test_a_journal_whose_owner_lives_is_left_alone(self, directory: Path, ledger: BudgetLedger) -> None:
        process = Process("journal", ledger.url, str(directory), "3")
        process.until_ready()
        assert recover(ledger, [directory], Warnings()) == 0
        assert [(found.alive, found.contents) for found in journals_found([directory])] == [(True, None)]
        process.kill()
        assert recover(ledger, [directory], Warnings()) == 2

    def test_opening_the_ledger_takes_the_rows_over(self, directory: Path, url: str) -> None:
        with closing(open_ledger(url, journals=())) as ledger:
            canonical = ledger.url
        abandoned(directory, canonical, "a", "b")
        for _ in range(2):
            with closing(open_ledger(url, journals=[directory])) as ledger:
                assert ids(ledger) == ["a", "b"]

    def test_a_ledger_is_known_again_however_its_url_is_spelt(self, directory: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path)
        abandoned(directory, f"sqlite:///{tmp_path}/link/../{tmp_path.name}/l.db", "a")
        with closing(open_ledger(f"sqlite:///{tmp_path}/l.db", journals=[directory])) as ledger:
            assert ids(ledger) == ["a"]

    @pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take nothing but UTF-8")
    def test_rows_for_a_ledger_whose_path_is_no_utf_8_are_taken_over_when_it_is_opened(self, directory: Path) -> None:
        url = f"sqlite:///{directory}/\udcff/ledger.db"
        abandoned(directory, url, "a", "b")
        with closing(open_ledger(url, journals=[directory])) as ledger:
            assert ids(ledger) == ["a", "b"]

    def test_rows_that_the_ledger_has_already_do_not_come_twice(self, directory: Path, ledger: BudgetLedger) -> None:
        ledger.append([row(id="a")])
        abandoned(directory, ledger.url, "a", "b")
        recover(ledger, [directory], Warnings())
        assert ids(ledger) == ["a", "b"]

    def test_a_journal_for_another_ledger_waits_for_that_one(self, directory: Path, ledger: BudgetLedger) -> None:
        path = abandoned(directory, "sqlite:////elsewhere.db", "a")
        assert recover(ledger, [directory], Warnings()) == 0
        assert journals(directory) == [path]
        [found] = journals_found([directory])
        assert found.contents
        assert found.contents.ledger == "sqlite:////elsewhere.db"
        assert len(found.contents.rows) == 1

    def test_torn_records_are_reported_and_the_others_recovered(
        self, directory: Path, ledger: BudgetLedger, warnings: Warnings
    ) -> None:
        path = abandoned(directory, ledger.url, "a", "b", "c")
        data = bytearray(path.read_bytes())
        data[data.index(b"claude-agent-acp", data.index(b"claude-agent-acp") + 1)] ^= 1
        path.write_bytes(data)
        recover(ledger, [directory], warnings)
        assert ids(ledger) == ["a", "c"]
        assert warnings.told == [("journal.torn", {"path": str(path), "skipped": 1, "recovered": 2})]
        assert journals(directory) == []

    def test_a_journal_of_a_newer_format_is_left_alone_and_reported(
        self, directory: Path, ledger: BudgetLedger, warnings: Warnings
    ) -> None:
        path = abandoned(directory, ledger.url, "a")
        path.write_bytes(b"acpjrnl9" + path.read_bytes()[8:])
        assert recover(ledger, [directory], warnings) == 0
        assert warnings.told == [("journal.unknown", {"path": str(path)})]
        assert journals(directory) == [path]

    def test_a_ledger_out_of_reach_leaves_the_journal_for_later(self, directory: Path, tmp_path: Path) -> None:
        with closing(SqliteLedger(tmp_path / "l.db", patience=0)) as ledger:
            path = abandoned(directory, ledger.url, "a")
            with closing(sqlite3.connect(ledger.path, isolation_level=None)) as holder:
                holder.execute("BEGIN IMMEDIATE")
                with pytest.raises(LedgerUnavailableError):
                    recover(ledger, [directory], Warnings())
                assert journals(directory) == [path]
                with closing(open_ledger(ledger.url, patience=0, journals=[directory], warn=Warnings())) as reader:
                    assert ids(reader) == []
            assert recover(ledger, [directory], Warnings()) == 1

    def test_what_was_abandoned_before_it_was_a_journal_is_removed(self, directory: Path, ledger: BudgetLedger) -> None:
        directory.mkdir(parents=True)
        fresh, stale = directory / "f.new", directory / "s.new"
        fresh.touch()
        stale.touch()
        os.utime(stale, (0, 0))
        recover(ledger, [directory], Warnings())
        assert journals(directory) == [fresh]

    def test_a_missing_directory_holds_no_journals(self, directory: Path, ledger: BudgetLedger) -> None:
        assert recover(ledger, [directory], Warnings()) == 0
        assert journals_found([directory]) == []


def test_a_journal_without_a_file_keeps_nothing() -> None:
    journal = Journal()
    assert journal.path is None
    assert journal.write(row()) is None
