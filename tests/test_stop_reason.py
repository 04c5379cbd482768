"""Why an operation ended (contract 2.6)."""

import pytest

from requests_smithy_retry import StopReason


@pytest.mark.parametrize("reason", StopReason)
def test_a_stop_reason_is_a_phrase(reason):
    """Each reason reads as the end of a sentence."""
    assert reason.value == reason.value.strip().rstrip(".")
    assert " " in reason.value
