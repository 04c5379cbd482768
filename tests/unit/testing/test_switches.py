"""Switching retries off and capping attempts, whatever the code under test configured."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import retry_options
from requests_smithy_retry.testing import cap_attempts, retries_disabled, scripted
from tests.support import send


def attempts_of(**options: Any) -> int:
    """Count the attempts of an operation that always fails; each counts, unless it is told otherwise."""
    adapter = scripted(*[503] * 9, **{"quota": 500, **options})
    send(adapter)
    return len(adapter.sent)


def test_switched_off_each_operation_is_one_attempt() -> None:
    """Inside the block the adapter is a plain one; after it, all is as before."""
    with retries_disabled():
        assert attempts_of() == 1
    assert attempts_of() == 3


@pytest.mark.parametrize(("most", "configured", "expected"), [(2, 5, 2), (5, 2, 2), (1, 3, 1), (3, 3, 3)])
def test_capped_the_smaller_number_holds(most: int, configured: int, expected: int) -> None:
    """The smaller of the cap and the number that the adapter, or a block of the code under test, has configured."""
    with cap_attempts(most):
        assert expected == attempts_of(max_attempts=configured)
        with retry_options(max_attempts=configured):
            assert expected == attempts_of()


def test_no_attempt_at_all_is_no_cap() -> None:
    """A cap below 1 is refused."""
    with pytest.raises(ValueError, match="most=0: a whole number of 1 or more is allowed"), cap_attempts(0):
        raise AssertionError
