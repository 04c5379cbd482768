"""The limiter's numbers have the published defaults, and ranges."""

from __future__ import annotations

import pytest

from requests_smithy_retry import RateLimiterSettings, RetryConfig, RetryConfigError
from tests.spec_files import adaptive_vectors


def test_the_defaults_are_the_published_constants():
    """Each constant of the vectors' ``meta``."""
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


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("beta", bad) for bad in (0, 1, -1, 1.5)),
        *(("smoothing", bad) for bad in (0, 1.01)),
        *((name, bad) for name in ("min_capacity", "max_rate_scale") for bad in (0, 0.99)),
        *((name, bad) for name in ("scale", "min_fill_rate", "interval") for bad in (0, -1)),
        *(("scale", bad) for bad in (True, "1", None, float("nan"), float("inf"), 10**400)),
    ],
)
def test_a_number_out_of_range_is_refused_by_name(name, bad):
    """The error names the number, the value and what is allowed."""
    with pytest.raises(ValueError, match=f"{name}={bad!r}: .* is allowed"):
        RateLimiterSettings(**{name: bad})


def test_the_ends_of_the_ranges_are_allowed():
    """A smoothing of 1, a capacity of 1 and a scale of 1."""
    settings = RateLimiterSettings(smoothing=1, min_capacity=1, max_rate_scale=1)
    assert (settings.smoothing, settings.min_capacity, settings.max_rate_scale) == (1, 1, 1)


def test_the_option_takes_settings_alone():
    """A dict is refused by the option's name."""
    with pytest.raises(RetryConfigError, match="rate_limiter="):
        RetryConfig(rate_limiter={"beta": 0.5})
    assert RetryConfig(rate_limiter=RateLimiterSettings(beta=0.5)).rate_limiter.beta == 0.5
