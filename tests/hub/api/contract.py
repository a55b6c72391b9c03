"""Whatever the OpenAPI document allows, and does not, asked of a hub as each role: what is wrong with the answers.

`python -m tests.hub.api.contract URL_OF_A_LEDGER EXAMPLES` asks each operation so often, and prints all that it found.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import ValidationError
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.schemas import APIOperation

from harness import hub
from harness.rows import NOON
from tests.hub.api.conftest import PEOPLE, ROLES
from tests.hub.api.described import check_answer

WHO = (*ROLES, "nobody")
load_all_checks()
_CHECKS = CHECKS.get_by_names(["not_a_server_error", "status_code_conformance", "content_type_conformance"])


def wrong_answers(ledger: str, examples: int, share: float = 1.0) -> Iterator[str]:
    """One text for each operation that has any, with what the hub's log says; of a share of them, by chance."""
    log: list[str] = []

    def warn(event: str, **fields: object) -> None:
        log.append(f"{event} {fields}")

    with hub.running(ledger, PEOPLE, clock=lambda: NOON, warn=warn) as url, requests.Session() as session:
        document = session.get(f"{url}/v1/openapi.json").json()
        for found in schemathesis.openapi.from_dict(document).get_all_operations():
            if random.random() >= share:
                continue
            wrong = _wrong(found.ok(), _Hub(url, document, session), examples)  # type: ignore[union-attr]
            yield from (f"{each}\n{log[-1:]}" for each in wrong)


class _Hub(NamedTuple):
    url: str
    document: Any
    session: requests.Session

    def ask(self, case: Case[Any], who: str) -> None:
        """Raises AssertionError for an answer that is not as described."""
        headers = {"Authorization": f"Bearer {who}"}
        response = case.call_and_validate(self.url, self.session, headers, checks=_CHECKS, timeout=30)  # type: ignore[arg-type]
        described = self.document["paths"][case.path][case.method.lower()]["responses"][str(response.status_code)]
        check_answer(self.document, described, response.content)


def _wrong(operation: APIOperation[Any, Any, Any, Any], hub: _Hub, examples: int) -> Iterator[str]:
    cases = operation.as_strategy() | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases, st.sampled_from(WHO))
    def is_as_described(case: Case[Any], who: str) -> None:
        hub.ask(case, who)

    try:
        is_as_described()
    except (FailureGroup, Failure, ValidationError) as error:
        yield f"{operation.label}: {error}"


def main() -> None:
    _, ledger, examples = sys.argv
    for wrong in wrong_answers(ledger, int(examples)):
        sys.stdout.write(f"{wrong}\n\n")


if __name__ == "__main__":
    main()
