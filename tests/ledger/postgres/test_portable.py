"""What a ledger says to its server: nothing that others who speak PostgreSQL's protocol do not document."""

from __future__ import annotations

import re
from contextlib import closing

from acp_proxy.ledger import Query, open_ledger
from harness.faults.gate import gated
from harness.postgres import Server
from tests.ledger.postgres.works import WORKS

# Locks of whole tables, and state that stays on a connection.
BEGINNINGS = r"LOCK|LISTEN|UNLISTEN|NOTIFY|SET(?! LOCAL)|RESET|DISCARD|DECLARE|PREPARE|SAVEPOINT|COPY|DO"
# What belongs to one server alone.
WORDS = r"TEMP|TEMPORARY|SERIAL|SEQUENCE|nextval|TRIGGER|LANGUAGE|ctid|xmin|pg_(?:try_)?advisory_(?:un)?lock\w*"
FOREIGN = re.compile(rf"^\s*(?:{BEGINNINGS})\b|\b(?:{WORDS})\b")
# Of one transaction. CockroachDB knows them and does nothing; there all begin to migrate, and one is let through.
ADVISORY = re.compile(r"pg_(?:try_)?advisory_xact_lock\w*")


def test_no_statement_has_what_others_do_not_document(postgres: Server) -> None:
    with gated(postgres.port) as gate:
        url = postgres.create("portable").replace(f":{postgres.port}/", f":{gate.port}/")
        with closing(open_ledger(url, journals=())) as ledger:
            migrated = set(gate.texts)
            for number, work in enumerate(WORKS):
                work(ledger, 2 * number)
            ledger.check()
            assert ledger.rebuild()
            ledger.summed(Query(), ("model",))
    assert len(gate.texts) > 100
    assert [text for text in gate.texts if FOREIGN.search(text)] == []
    assert {found for text in migrated for found in ADVISORY.findall(text)} == {"pg_try_advisory_xact_lock"}
    assert not [text for text in gate.texts - migrated if ADVISORY.search(text)]
