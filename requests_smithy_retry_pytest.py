"""The pytest plugin of ``requests_smithy_retry``: fixtures, and a fresh start for each test. It imports nothing until a
test asks for a fixture.

It stands outside the package because importing anything from there imports ``requests``, which a test run that does not
use it shall not pay for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from requests_smithy_retry.testing import AttemptLog, FaultServer, RetryClock


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    told = "keep_retry_state: the test begins with the quotas, lines and gates that those before it left behind"
    config.addinivalue_line("markers", told)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have every adapter and strategy begin anew, so that no test depends on those before it."""
    forgetting = sys.modules.get("requests_smithy_retry.forksafe")  # not there: nothing was learnt
    if forgetting is not None and item.get_closest_marker("keep_retry_state") is None:
        forgetting.forget_everything()


@pytest.fixture
def retry_clock() -> Iterator[RetryClock]:
    """Make every wait between attempts instant; ``retry_clock.sleeps`` has the seconds of each."""
    from requests_smithy_retry.testing import skipped_waits

    with skipped_waits() as clock:
        yield clock


@pytest.fixture
def retry_attempts() -> Iterator[AttemptLog]:
    """Log every attempt, to assert on: ``retry_attempts.assert_endings(503, 200)``."""
    from requests_smithy_retry.testing import watched_attempts

    with watched_attempts() as log:
        yield log


@pytest.fixture
def fault_server() -> Iterator[FaultServer]:
    """A server on a real loopback socket that does what ``fault_server.script([...])`` says."""
    from requests_smithy_retry.testing import FaultServer

    with FaultServer() as server:
        yield server


@pytest.fixture
def retries_disabled() -> Iterator[None]:
    """Switch retries off during the test; for a whole suite: ``usefixtures = retries_disabled`` in its settings."""
    from requests_smithy_retry.testing import retries_disabled

    with retries_disabled():
        yield


@pytest.fixture
def cap_retry_attempts() -> Iterator[Callable[[int], None]]:
    """Call it with a number: no operation makes more attempts from then on until the test ends."""
    from contextlib import ExitStack

    from requests_smithy_retry.testing import cap_attempts

    with ExitStack() as stack:
        yield lambda most: stack.enter_context(cap_attempts(most))
