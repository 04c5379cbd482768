"""What each kind of option accepts (contract 10.1)."""

import pytest

from requests_smithy_retry import Jitter, RetryConfig, RetryConfigError
from requests_smithy_retry.classifiers.hinted_status import HintedStatusClassifier
from requests_smithy_retry.max_retries import UNSET
from requests_smithy_retry.options import OPTIONS, allowed_values


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_says_what_it_allows(name):
    """Nothing accepts any object, and the refusal is a phrase."""
    assert "" != allowed_values(name)
    with pytest.raises(RetryConfigError, match=name):
        RetryConfig(**{name: object()})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_attempts", True),
        ("max_attempts", 2.0),
        ("max_backoff", True),
        ("max_backoff", float("nan")),
        ("max_backoff", -0.1),
        ("max_backoff", 10**400),
        ("operation_timeout", 10**400),
        ("timeout", (1, 10**400)),
        ("quota", 10**400),
        ("quota", float("nan")),
        ("enabled", 1),
        ("timeout", (1, 2, 3)),
        ("timeout", 0),
        ("allowed_methods", "GET"),
        ("allowed_methods", [""]),
        ("retry_status_codes", "503"),
        ("retry_status_codes", [True]),
        ("idempotency_header", "a b"),
        ("quota", -1),
        ("classifiers", [1]),
        ("aws_config", " "),
        ("urllib3_rules", "x"),
        ("mode", 1),
    ],
)
def test_a_near_miss_is_refused(name, value):
    """What looks nearly right is named in the error."""
    with pytest.raises(RetryConfigError, match=r"is allowed|are allowed"):
        RetryConfig(**{name: value})


@pytest.mark.parametrize(("name", "value", "kept"), [("allowed_methods", [], frozenset()), ("max_backoff", 0, 0)])
def test_empty_and_zero_are_values(name, value, kept):
    """They are not taken for "not given"."""
    assert kept == getattr(RetryConfig(**{name: value}), name)


@pytest.mark.parametrize("kind", Jitter)
def test_a_member_of_an_enum_stands_for_its_value(kind):
    """``Jitter.FULL`` is ``"full"``, as in the backoff strategy."""
    assert kind.value == RetryConfig(jitter=kind).jitter


def test_not_given_has_a_name():
    """The sentinel shows in signatures as what it is."""
    assert "<not given>" == repr(UNSET)


def test_a_hinted_429_is_throttling():
    """A status with a Retry-After is judged by its number."""
    from types import SimpleNamespace

    from requests_smithy_retry import ErrorKind, Outcome

    response = SimpleNamespace(status_code=429, headers={"Retry-After": "1"})
    action = HintedStatusClassifier({429}).classify_retry(Outcome(response=response), None)
    assert ErrorKind.THROTTLING is action.reason.kind
