"""Switching retries off and capping attempts, whatever the code under test configured."""

from __future__ import annotations

import threading

import pytest

from requests_smithy_retry import RetryAdapter, RetryListener, retry_options
from requests_smithy_retry.testing import cap_attempts, retries_disabled, scripted
from tests.support import send


def attempts_of(**options: int) -> int:
    """How many attempts an operation makes that always fails."""
    adapter = scripted(*[503] * 9, **options)
    send(adapter)
    return len(adapter.sent)


def test_switched_off_each_operation_is_one_attempt() -> None:
    """Inside the block the adapter is a plain one; after it, all is as before."""
    with retries_disabled():
        assert attempts_of() == 1
    assert attempts_of() == 3


@pytest.mark.parametrize(("most", "configured", "expected"), [(2, 5, 2), (5, 2, 2), (1, 3, 1), (3, 3, 3)])
def test_capped_the_smaller_number_holds(most: int, configured: int, expected: int) -> None:
    """Who configured fewer attempts than the cap gets fewer."""
    with cap_attempts(most):
        assert expected == attempts_of(max_attempts=configured)


@pytest.mark.parametrize(("asked", "expected"), [(2, 2), (9, 4)])
def test_the_cap_holds_for_options_of_a_block(asked: int, expected: int) -> None:
    """retry_options(max_attempts=...) in the code under test is capped as well."""
    with cap_attempts(4), retry_options(max_attempts=asked):
        assert expected == attempts_of()


def test_blocks_nest() -> None:
    """The tighter cap holds, whichever is outside."""
    with cap_attempts(2), cap_attempts(3):
        assert attempts_of() == 2
    with cap_attempts(3), cap_attempts(2):
        assert attempts_of() == 2


def test_no_attempt_at_all_is_no_cap() -> None:
    """A cap below 1 is refused."""
    with pytest.raises(ValueError, match="from 1 attempt on is allowed"), cap_attempts(0):
        raise AssertionError


def test_it_holds_in_every_thread() -> None:
    """The switch is the process's, not the context's."""
    found: list[int] = []
    with retries_disabled():
        thread = threading.Thread(target=lambda: found.append(attempts_of()))
        thread.start()
        thread.join(10)
    assert [1] == found


def test_afterwards_the_adapter_is_as_it_was() -> None:
    """The block leaves nothing behind, also when it ends by an exception."""
    before = RetryAdapter.send
    with retries_disabled():
        assert RetryAdapter.send is not before
    with pytest.raises(ZeroDivisionError), retries_disabled():
        raise ZeroDivisionError
    assert RetryAdapter.send is before


def test_listeners_are_still_told_under_a_cap() -> None:
    """A cap changes the number of attempts and nothing else."""
    seen: list[int] = []

    class Listener(RetryListener):
        def after_attempt(self, event: object) -> None:
            seen.append(event.number)  # type: ignore[attr-defined]

    with cap_attempts(2):
        send(scripted(503, 503, listeners=[Listener()]))
    assert [1, 2] == seen
