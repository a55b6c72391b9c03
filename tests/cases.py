"""Many cases of one behaviour as one test: much cheaper than a test for each, and whichever fail are all named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")


def each_of(
    cases: Iterable[Case], name: Callable[[Case], str] = str
) -> Callable[[Callable[[Case], None]], Callable[[pytest.Subtests], None]]:
    """Calls the decorated test with each of `cases`; its name is shown when it fails."""
    listed = list(cases)
    assert listed

    def decorate(test: Callable[[Case], None]) -> Callable[[pytest.Subtests], None]:
        def run(subtests: pytest.Subtests) -> None:
            for case in listed:
                with subtests.test(name(case)):
                    test(case)

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate
