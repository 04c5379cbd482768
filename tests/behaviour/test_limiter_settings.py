"""The limiter's numbers have the published defaults, and ranges."""

from __future__ import annotations

import itertools
import sys

import pytest

from requests_smithy_retry import AdaptiveRetryStrategy, RetryConfigError
from requests_smithy_retry.quotas import RateLimiterSettings
from tests.spec_files import adaptive_vectors

MOST = sys.float_info.max


def test_the_defaults_are_the_published_constants():
    """The defaults are the constants in the vectors' ``meta``."""
    constants = adaptive_vectors()["meta"]["constants"]
    settings = RateLimiterSettings()
    assert {
        "beta": settings.beta,
        "scale_constant": settings.scale,
        "min_fill_rate": settings.min_fill_rate,
        "min_capacity": settings.min_capacity,
        "smoothing": settings.smoothing,
        "measure_bucket_seconds": settings.interval,
        "max_rate_scale": settings.max_rate_scale,
        "tokens_per_attempt": 1,
    } == constants


NO_NUMBERS = (True, "1", None, float("nan"), float("inf"), -float("inf"), 10**400)


@pytest.mark.parametrize(
    ("names", "allowed", "good", "bad"),
    [
        (("beta",), "a number above 0 and below 1", (5e-324, 0.99), (0, 1, -1, 1.5)),
        (("smoothing",), "a number above 0 and up to 1", (5e-324, 1), (0, 1.01)),
        (("min_capacity", "max_rate_scale"), "a number of 1 or more", (1, MOST), (0, 0.99)),
        (("scale", "min_fill_rate", "interval"), "a number above 0", (5e-324, 1, MOST), (0, -1)),
        (("scale", "beta"), "a finite number", (), NO_NUMBERS),
    ],
)
def test_a_number_out_of_range_is_refused_by_name(names, allowed, good, bad):
    """The error names the number, the value and what is allowed; the ends of a range are, as far as floats go."""
    for name, value in itertools.product(names, good):
        assert value == getattr(RateLimiterSettings(**{name: value}), name)
    for name, value in itertools.product(names, bad):
        with pytest.raises(ValueError, match="is allowed") as caught:
            RateLimiterSettings(**{name: value})
        assert f"{name}={value!r}: {allowed} is allowed" == str(caught.value)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("rate_limiter", {"beta": 0.5}),
        ("rate_limiter", None),
        ("max_permit_wait", -1),
        ("max_permit_wait", float("inf")),
        ("max_permit_wait", "1"),
    ],
)
def test_a_bad_value_of_the_strategy_is_refused_by_name(name, bad):
    """A limiter's settings are settings, and the longest wait is finite; the error names the parameter."""
    with pytest.raises(RetryConfigError, match=f"^{name}="):
        AdaptiveRetryStrategy(**{name: bad})


@pytest.mark.parametrize("longest", [0, 2.5, None])
def test_the_strategy_shows_what_it_was_given(longest):
    """Never wait, a number of seconds, and no bound; the published numbers by default."""
    strategy = AdaptiveRetryStrategy(max_permit_wait=longest)
    assert (longest, RateLimiterSettings()) == (strategy.max_permit_wait, strategy.rate_limiter)
    settings = RateLimiterSettings(beta=0.5)
    assert settings is AdaptiveRetryStrategy(rate_limiter=settings).rate_limiter
