"""`acp-proxy notify test`, and what `acp-proxy doctor` says of channels."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from pathlib import Path

from acp_proxy.config import load
from acp_proxy.core.notice import Notice
from acp_proxy.doctor.channels import channel_troubles
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.notices import Result
from acp_proxy.notify.destinations import destination
from harness.rows import MINUTE
from tests.notify.house import notice
from tests.notify.receiver import Receiver, answer, receiving
from tests.serve.house import Home


def configure(home: Home, **receivers: Receiver) -> None:
    home.configure(
        "".join(f'[[notify]]\nname = "{name}"\nurl = "{receiver.url}"\n' for name, receiver in receivers.items())
    )


async def test_each_channel_gets_a_sample_and_a_line_says_how_it_went(tmp_path: Path) -> None:
    home = Home(tmp_path)
    async with receiving() as good, receiving(answer(404)) as gone:
        configure(home, good=good, gone=gone)
        done = await asyncio.to_thread(home.run, "notify", "test")
        assert done.stdout == "good  json  127.0.0.1  sent\ngone  json  127.0.0.1  failed: HTTP 404\n"
        assert (done.returncode, done.stderr) == (1, "")
        assert [(body["kind"], body["title"]) for body in good.bodies] == [("test", "A test of acp-proxy")]
        again = await asyncio.to_thread(home.run, "notify", "test", "good")
        assert (again.returncode, len(gone.requests)) == (0, 1)
        assert good.bodies[0]["id"] != good.bodies[1]["id"]
        assert not (tmp_path / ".local").exists()  # no ledger was made


def test_who_has_no_channel_or_not_that_one_is_told_so(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.run("notify", "test").stderr == "acp-proxy: notify: no [[notify]] is configured\n"
    home.configure('[[notify]]\nurl = "http://127.0.0.1:1/"\n')
    done = home.run("notify", "test", "leads")
    assert (done.returncode, done.stderr) == (2, "acp-proxy: notify: no channel 'leads'; there is json\n")
    home.configure("".join(f'[[notify]]\nname = "{name}"\nurl = "http://127.0.0.1:1/"\n' for name in ("ops", "pager")))
    assert home.run("notify", "test", "leads").stderr.endswith("no channel 'leads'; there are ops, pager\n")


class Doctor:
    """One channel, and a ledger with notices for it."""

    def __init__(self, path: Path, text: str) -> None:
        file = path / "config.toml"
        file.write_text(text)
        self.config = load({"config": str(file)}, {"HOME": str(path)}, admin_file=path / "none")
        self.now = time.time_ns()

    def note(self, *notices: Notice) -> None:
        with closing(open_ledger(self.config.ledger.url, journals=())) as ledger:
            ledger.outbox.note(notices)

    def try_in_vain(self, result: Result, error: str) -> None:
        wanted = destination(self.config.channels[0], "default").wanted
        with closing(open_ledger(self.config.ledger.url, journals=())) as ledger:
            claimed = ledger.outbox.claim(wanted, self.now, self.now + MINUTE)
            assert claimed
            ledger.outbox.settle(wanted, "x", claimed, result, self.now + MINUTE, error)

    def says(self) -> list[tuple[str, list[str]]]:
        with closing(open_ledger(self.config.ledger.url, journals=())) as ledger:
            return list(channel_troubles(self.config, ledger, self.now))


SLACK = '[[notify]]\nname = "leads"\nurl = "https://hooks.slack.com/verysecret"\nformat = "slack"\n'


def test_doctor_says_where_a_channel_posts_and_what_it_wants(tmp_path: Path) -> None:
    assert Doctor(tmp_path, SLACK).says() == [('notify: "leads" (user): slack to hooks.slack.com, everything', [])]
    wants = f'{SLACK}on = ["refusal", "ledger"]\nbudgets = ["team-*"]\n'
    assert Doctor(tmp_path, wants).says() == [
        ('notify: "leads" (user): slack to hooks.slack.com, refusal, ledger of team-*', [])
    ]


def test_doctor_says_that_nothing_is_sent_where_nobody_serves(tmp_path: Path) -> None:
    doctor = Doctor(tmp_path, SLACK)
    doctor.note(notice(1, doctor.now - 2 * MINUTE), notice(2, doctor.now - MINUTE // 2))
    assert doctor.says()[0][1] == [
        "1 notice of the last day unsent: only `acp-proxy serve` sends notices, and none seems to run"
    ]


def test_doctor_says_what_fails(tmp_path: Path) -> None:
    doctor = Doctor(tmp_path, SLACK)
    doctor.note(*(notice(number, doctor.now - 2 * MINUTE) for number in range(3)))
    doctor.try_in_vain("failed", "HTTP 404")
    waits = "after a failure `acp-proxy serve` waits up to an hour; restart it to retry at once"
    assert doctor.says()[0][1] == [
        f"2 notices of the last day unsent: {waits}",
        "1 notice of the last day given up (HTTP 404); `acp-proxy notify test` tries it",
    ]
    doctor.try_in_vain("retried", "HTTP 500")
    assert doctor.says()[0][1][1:] == [
        "1 notice will be retried (HTTP 500)",
        "1 notice of the last day given up (HTTP 404); `acp-proxy notify test` tries it",
    ]


def test_doctor_says_that_a_channel_rests_while_it_is_tried_again(tmp_path: Path) -> None:
    doctor = Doctor(tmp_path, SLACK)
    doctor.note(*(notice(number, doctor.now - 2 * MINUTE) for number in range(2)))
    doctor.try_in_vain("retried", "HTTP 500")
    rests, again = doctor.says()[0][1]
    assert rests.startswith("1 notice of the last day unsent: after a failure `acp-proxy serve` waits")
    assert again == "1 notice will be retried (HTTP 500)"


def test_doctor_names_a_file_that_it_cannot_read(tmp_path: Path) -> None:
    doctor = Doctor(tmp_path, '[[notify]]\nurl_file = "/nowhere/webhook"\n')
    ((text, troubles),) = doctor.says()
    assert text == 'notify: "json" (user): json'
    assert troubles == ['notify "json": url_file /nowhere/webhook: no such file or directory']


def test_doctor_says_it_in_its_own_form(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.configure(SLACK)
    done = home.run("doctor")
    assert 'ok   notify: "leads" (user): slack to hooks.slack.com, everything\n' in done.stdout
    assert "verysecret" not in done.stdout
