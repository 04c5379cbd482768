"""The values that each kind of option accepts and refuses, and the words of the refusal (contract 10.1)."""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import Any

import pytest
from urllib3.util import Timeout

from requests_smithy_retry import (
    HttpStatusCodeClassifier,
    Jitter,
    RateLimiterSettings,
    RetryConfig,
    RetryConfigError,
    RetryListener,
    TokenBucket,
)
from requests_smithy_retry.checks import Refused, number
from requests_smithy_retry.smithy import SmithyModel

MOST = sys.float_info.max
TOO_MUCH = (float("inf"), float("nan"), 10**400)
BUCKET = TokenBucket(5)


class Both(list[Any], RetryListener):
    """A classifier, a listener, and a collection of such."""

    name = "both"

    def classify_retry(self, outcome: object, previous: object) -> None:
        """Have no opinion."""


CLASSIFIER = HttpStatusCodeClassifier()
LISTENER = RetryListener()
MODEL = SmithyModel.from_dict({"smithy": "2.0", "shapes": {}})
ENDPOINT = MODEL.for_endpoint("https://api.example.com")
SETTINGS = RateLimiterSettings(beta=0.5)
TIMEOUT = Timeout(connect=1, read=2)

WHOLE_OR_NONE = "a whole number of 1 or more or None is allowed"
SECONDS = "a finite number of seconds (0 or more) is allowed"
SECONDS_OR_NONE = "a finite number of seconds (0 or more) or None is allowed"
ABOVE_OR_NONE = "a finite number of seconds above 0 or None is allowed"
MODES = "one of 'standard', 'adaptive' is allowed"
TRUTH = "True or False is allowed"
TIMES = "seconds above 0 and up to 2147483, a (connect, read) pair of them, a urllib3 Timeout, or None is allowed"
METHODS = "a collection of method names, or None for all methods, is allowed"
STATUSES = "a collection of statuses from 100 to 599 is allowed"
HEADER = "the name of a header is allowed"
QUOTA = (
    "a finite number of tokens (0 or more), 'payoff', a redis://, rediss:// or unix:// URL (special characters "
    "percent-encoded), a client of redis-py, a bucket, a function that makes one for a scope, or None for no quota "
    "is allowed"
)
CLASSIFIERS = "a collection of classifiers is allowed"
TELEMETRY = "a collection of 'log', 'otel' and 'prometheus' is allowed"
LISTENERS = "a collection of listeners is allowed"
MODELS = "a collection of Smithy models is allowed"
KEY = "True, False, or a function that makes a key is allowed"
PROFILE = "True, False, or the name of a profile is allowed"
FUNCTION = "a function or None is allowed"

REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("max_attempts", (0, -1, True, 2.0, "3", 2**10_000), WHOLE_OR_NONE),
    ("max_backoff", (-0.1, True, "1", None, *TOO_MUCH), SECONDS),
    ("initial_backoff", (-1, False, "none", *TOO_MUCH), SECONDS_OR_NONE),
    ("operation_timeout", (0, 0.0, -1, True, *TOO_MUCH), ABOVE_OR_NONE),
    ("jitter", ("equal", "decorrelated", "", 1, None), "one of 'full', 'none' is allowed"),
    ("mode", ("legacy", "simple", "", 1, None, b"standard"), MODES),
    ("enabled", (0, 1, None, "true"), TRUTH),
    (
        "timeout",
        (
            0,
            -1,
            True,
            "3",
            *TOO_MUCH,
            (1,),
            (1, 2, 3),
            (None,),
            (1, 0),
            (0, 1),
            (None, 0),
            (True, 1),
            (1, "2"),
            [1, 2],
            MOST,
            (1, 2_147_484),
        ),
        TIMES,
    ),
    ("allowed_methods", ("GET", b"GET", 1, iter(["GET"])), METHODS),
    *[
        ("allowed_methods", (["GET", bad],), f"a collection of method names is allowed, and {bad!r} is not one")
        for bad in ("", "GE T", 1, b"GET", "GÉT", "a/b")
    ],
    *[
        (
            "allowed_methods",
            ([bad],),
            f"a collection of method names is allowed, and {bad!r} is not one: None means all",
        )
        for bad in ("*", "all", "ANY")
    ],
    ("retry_status_codes", ("503", b"503", 503, None, iter([503])), STATUSES),
    *[
        ("retry_status_codes", ([503, bad],), f"{STATUSES}, and {bad!r} is not one")
        for bad in (True, "503", 503.0, 99, 600)
    ],
    ("idempotency_header", ("", "a b", "a:", "é", None, b"Key"), HEADER),
    ("quota", (-1, True, "500", "payof", *TOO_MUCH), QUOTA),
    ("rate_limiter", (None, {"beta": 0.5}, RateLimiterSettings), "a RateLimiterSettings is allowed"),
    ("classifiers", (CLASSIFIER, Both(), "", b"", 5, None), CLASSIFIERS),
    *[
        (
            "classifiers",
            ([CLASSIFIER, bad],),
            (
                f"{CLASSIFIERS}, and {bad!r} is not one: it needs a name and a method classify_retry(outcome, "
                "previous); classifier(function) makes one from a function"
            ),
        )
        for bad in (1, len)
    ],
    ("models", (MODEL, ENDPOINT, "", b"", 5, None), f"{MODELS}, each with its endpoint: model.for_endpoint(url)"),
    (
        "models",
        ([ENDPOINT, MODEL], (MODEL,)),
        (
            f"{MODELS}, and {MODEL!r} does not know its endpoint: give model.for_endpoint(url), or have "
            "mount(session, at=url, models=[model]) do it. A model speaks for the requests to one endpoint alone"
        ),
    ),
    ("idempotency_key", (1, "key", None), KEY),
    ("aws_config", (" ", "", 1, None), PROFILE),
    ("scope", (1, "scope"), FUNCTION),
    ("telemetry", ("otel", b"", 5, None), TELEMETRY),
    *[("telemetry", ([bad],), f"{TELEMETRY}, and {bad!r} is not one") for bad in ("open-telemetry", "", 5, ["log"])],
    ("listeners", (LISTENER, Both(), "", b"", 5, None), LISTENERS),
    *[
        (
            "listeners",
            ([LISTENER, bad],),
            (
                f"{LISTENERS}, and {bad!r} has none of before_attempt, after_attempt, retry_scheduled, throttled, "
                "gave_up, succeeded, body_progress"
            ),
        )
        for bad in (1, RetryListener)
    ],
]


@pytest.mark.parametrize(("name", "values", "allowed"), REFUSED)
def test_what_is_not_allowed_is_refused_with_what_is(name, values, allowed):
    """The error names the option, the value and its source, and says what is allowed, in these words."""
    for value in values:
        with pytest.raises(RetryConfigError) as caught:
            RetryConfig(**{name: value})
        assert f"{name}={value!r} (from code): {allowed}" == str(caught.value)


KEPT: list[tuple[str, Any, Any]] = [
    *[("max_attempts", value, value) for value in (None, 1, 2, sys.maxsize, 2**10_000 - 1)],
    *[("max_backoff", value, value) for value in (0, 0.5, 7, MOST)],
    *[("initial_backoff", value, value) for value in (None, 0, 0.5)],
    *[("operation_timeout", value, value) for value in (None, 5e-324, 0.5, 7)],
    ("mode", "Standard", "standard"),
    ("mode", "adaptive", "adaptive"),
    *[("jitter", kind, kind.value) for kind in (Jitter.FULL, Jitter.NONE)],
    *[("enabled", value, value) for value in (True, False)],
    *[
        ("timeout", value, value)
        for value in (None, 0.5, 3, 2_147_483, (0.5, 3), (None, 2), (2, None), (None, None), TIMEOUT)
    ],
    ("allowed_methods", None, None),
    *[("allowed_methods", value, frozenset()) for value in ([], (), {})],
    *[("allowed_methods", value, frozenset({"GET", "POST"})) for value in (["get", "POST"], {"Get": 1, "post": 2})],
    ("allowed_methods", {"M-SEARCH", "!#$%&'*+-.^_`|~09az"}, frozenset({"M-SEARCH", "!#$%&'*+-.^_`|~09AZ"})),
    ("retry_status_codes", (), frozenset()),
    ("retry_status_codes", [100, 599], frozenset({100, 599})),
    ("retry_status_codes", range(500, 503), frozenset({500, 501, 502})),
    ("idempotency_header", "X-Key", "X-Key"),
    *[("quota", value, value) for value in (None, 0, 0.5, 7, MOST, BUCKET, "payoff")],
    ("quota", "Payoff", "payoff"),
    ("rate_limiter", SETTINGS, SETTINGS),
    ("classifiers", [], ()),
    ("classifiers", iter([CLASSIFIER]), (CLASSIFIER,)),
    ("models", (), ()),
    ("models", [], ()),
    ("models", iter([ENDPOINT]), (ENDPOINT,)),
    *[("idempotency_key", value, value) for value in (True, False, len)],
    *[("aws_config", value, value) for value in (True, False, "fleet")],
    *[("scope", value, value) for value in (None, len)],
    ("telemetry", [], ()),
    ("telemetry", ["prometheus", "OTel", "log", "otel"], ("log", "otel", "prometheus")),
    ("listeners", [], ()),
    ("listeners", iter([LISTENER]), (LISTENER,)),
]


@pytest.mark.parametrize(("name", "given", "kept"), KEPT)
def test_what_is_allowed_is_kept_in_one_form(name, given, kept):
    """Both ends of a range, 0 and empty values are kept; words in lower case, methods in upper case, sets frozen."""
    value = getattr(RetryConfig(**{name: given}), name)
    assert (kept, type(kept)) == (value, type(value))


def test_a_status_of_an_enum_is_kept_as_its_number():
    """The status is kept as an ``int``, so that a config is shown as numbers."""
    (code,) = RetryConfig(retry_status_codes=[HTTPStatus.BAD_GATEWAY]).retry_status_codes
    assert (502, int) == (code, type(code))


def test_a_number_may_have_another_lower_end():
    """The value must be above that end, and the refusal names it."""
    above = number(above=2.5, unit="tokens")
    assert 2.6 == above(2.6)
    for bad in (2.5, 1, None):
        with pytest.raises(Refused, match=r"^a finite number of tokens above 2\.5 is allowed$"):
            above(bad)
