"""The message about a name that does not exist."""

from __future__ import annotations

from requests_smithy_retry.checks import suggestion

KNOWN = ("max_attempts", "quota")


def test_a_typing_mistake_is_told_the_nearest_name():
    """Written as the caller asks."""
    assert "did you mean quota?" == suggestion("qouta", KNOWN)
    assert "did you mean 'quota'?" == suggestion("qouta", KNOWN, repr)


def test_a_name_that_is_near_none_is_told_all():
    """A name that resembles no known one leads to all names in their order; an iterator of names is allowed."""
    assert "there are max_attempts, quota" == suggestion("zzz", iter(KNOWN), repr)
