"""The ledgers that a notifier is tried on: those of the contract."""

from tests.ledger.conftest import emptied as emptied
from tests.ledger.conftest import postgres as postgres
from tests.ledger.conftest import url as url
