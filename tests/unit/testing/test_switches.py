"""Switching retries off and capping attempts, whatever the code under test configured."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from requests_smithy_retry import RetryAdapter, RetryListener, retry_history, retry_options
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
    """The smaller of the cap and the configured number of attempts holds."""
    with cap_attempts(most):
        assert expected == attempts_of(max_attempts=configured)


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("options", [{}, {"operation_timeout": 600}, {"max_attempts": 9}, {"mode": "adaptive"}])
def test_no_more_are_sent_while_the_service_is_down(most: int, options: dict[str, Any]) -> None:
    """However long their operation could wait."""
    with cap_attempts(most):
        assert most == attempts_of(quota="payoff", **options)


def test_under_a_cap_that_is_not_reached_an_outage_is_waited_out() -> None:
    """A call that succeeds with fewer attempts does so."""
    adapter = scripted(503, 503, 503, 200)
    with cap_attempts(4):
        assert 200 == send(adapter).status_code
    assert 4 == len(adapter.sent)


def test_a_capped_operation_says_why_it_ended() -> None:
    """A capped operation ends like one whose attempts are used up."""
    with cap_attempts(2):
        history = retry_history(send(scripted(*[503] * 9)))
    assert "gave up after attempt 2 of 2: no attempts are left; last answer: 503" == history.sentence


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
    with pytest.raises(ValueError, match="most=0: a whole number of 1 or more is allowed"), cap_attempts(0):
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
