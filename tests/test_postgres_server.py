"""The server that tests start for themselves."""

from __future__ import annotations

import pytest

from harness.postgres import PostgresError, running


def test_a_server_that_does_not_start_says_why() -> None:
    with (
        pytest.raises(PostgresError, match=r'(?s)^pg_ctl ended with 1: .*"no_such_setting"'),
        running(["no_such_setting=1"]),
    ):
        pass
