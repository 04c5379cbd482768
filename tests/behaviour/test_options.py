"""Every option (contract 10.1): its default, what it allows and refuses and in which words, and where it is named."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from requests.adapters import HTTPAdapter
from urllib3.util import Timeout

from requests_smithy_retry import (
    RateLimitDialect,
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    RetryListener,
    RetryOptions,
    TokenBucket,
    only,
)
from requests_smithy_retry.classifiers import HttpStatusCodeClassifier
from requests_smithy_retry.quotas import ExponentialRetryBackoffStrategy, Jitter

DEFAULTS: dict[str, Any] = {
    "mode": "standard",
    "max_attempts": None,
    "retry_spec": "2.1",
    "backoff": None,
    "max_backoff": 20.0,
    "jitter": "full",
    "quota": "payoff",
    "patience": 5.0,
    "max_retry_after": 120.0,
    "max_wait": None,
    "pacing": "announced",
    "operation_timeout": None,
    "operation_attempt_timeout": None,
    "deadline_header": None,
    "timeout": None,
    "max_idle": 55.0,
    "resume": True,
    "allowed_methods": frozenset(
        ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY", "LIST", "PROPFIND", "REPORT", "SEARCH"]
    ),
    "retry_status_codes": frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}),
    "idempotency_key": False,
    "on_unauthorized": None,
    "raise_on_status": False,
    "scope": None,
    "enabled": True,
    "classifiers": (),
    "validate": None,
    "listeners": (),
    "telemetry": (),
    "trust_env": True,
    "aws_config": False,
}


def test_the_options_and_their_defaults_are_the_promised_ones() -> None:
    """The options and their defaults are those of the contract, and no others; a config without options has them."""
    config = RetryConfig()
    found = {name: getattr(config, name) for name in RetryOptions.__annotations__}
    assert (DEFAULTS, list(DEFAULTS)) == (found, list(found))
    assert {name: type(value) for name, value in DEFAULTS.items()} == {name: type(found[name]) for name in found}


def test_the_fields_and_the_keywords_agree() -> None:
    """Every option is a field, a keyword of the same type, and a parameter of the adapter with its default."""
    keywords = {name: item.__forward_arg__ for name, item in RetryOptions.__annotations__.items()}
    fields = [field for field in dataclasses.fields(RetryConfig) if field.init]
    assert keywords == {field.name: field.type for field in fields}
    shown = inspect.signature(RetryAdapter).parameters
    assert {field.name: (field.type, field.default) for field in fields} == {
        name: (shown[name].annotation, shown[name].default) for name in keywords
    }


def test_the_signature_begins_as_that_of_the_plain_adapter() -> None:
    """HTTPAdapter's parameters come first, in its order; all that follow are keyword-only."""
    plain = list(inspect.signature(HTTPAdapter).parameters)
    ours = list(inspect.signature(RetryAdapter).parameters.values())
    assert plain == [parameter.name for parameter in ours[: len(plain)]]
    assert {inspect.Parameter.KEYWORD_ONLY} == {parameter.kind for parameter in ours[len(plain) : -1]}
    assert inspect.Parameter.VAR_KEYWORD is ours[-1].kind
    assert "<not given>" == repr(ours[2].default)


def test_the_reference_page_says_what_the_options_say() -> None:
    """The page has each option, in the same order, with its default and the words of its refusal."""
    lines = (Path(__file__).resolve().parents[2] / "docs/reference/options.md").read_text("utf-8").splitlines()
    items = {
        name.strip("`").partition("=")[0]: (name.strip("`").partition("=")[2], *text[2:].partition(" *Allowed*: ")[::2])
        for name, text in itertools.pairwise(lines)
        if text.startswith(": ") and "=" in name
    }
    assert list(DEFAULTS) == list(items)
    for option, (default, meaning, allowed) in items.items():
        with pytest.raises(RetryConfigError) as caught:
            RetryConfig(**{option: object()})
        assert caught.value.allowed.startswith(allowed.removesuffix(".")), option
        assert DEFAULTS[option] == ast.literal_eval(default)
        assert meaning


MOST = sys.float_info.max
HUGE = 10**5000
"""Python refuses to turn a number of thousands of digits into text; a message names its type."""
TOO_MUCH = (float("inf"), float("nan"), 10**400, -(10**400), HUGE)
BUCKET = TokenBucket(5)


class Both(list[Any], RetryListener):
    """A classifier, a listener, and a collection of such."""

    name = "both"

    def classify_retry(self, outcome: object, previous: object) -> None:
        """Have no opinion."""


class AtNoPriority(HttpStatusCodeClassifier):
    """A classifier whose priority is none."""

    name = "odd"
    priority: Any = 5


CLASSIFIER = HttpStatusCodeClassifier()
LISTENER = RetryListener()
DIALECT = RateLimitDialect("x-left", reset="x-reset")
TIMEOUT = Timeout(connect=1, read=2)

METHODS = "a collection of method names"
STATUSES = "a collection of statuses from 100 to 599 is allowed"
CLASSIFIERS = "a collection of classifiers is allowed"
TELEMETRY = "a collection of 'log', 'otel' and 'prometheus' is allowed"
LISTENERS = "a collection of listeners is allowed"
EVENTS = "before_attempt, after_attempt, wait_began, retry_scheduled, throttled, gave_up, succeeded, body_progress"
HEADER = "a header's name, a pair of it and 'seconds' or 'date', or None is allowed"
PACING = "'announced', 'off', a RateLimitDialect, or a collection of them is allowed"
QUOTA = (
    "a finite number of tokens (0 or more), 'payoff', a redis://, rediss:// or unix:// URL (special characters "
    "percent-encoded), a client of redis-py, a bucket, a function that makes one for a scope, or None for no quota "
    "is allowed"
)
TIMES = "seconds above 0 and up to 2147483, a (connect, read) pair of them, a urllib3 Timeout, or None is allowed"
BACKOFF = (
    "a finite number of seconds (0 or more), a backoff strategy, a function of (attempt, outcome), or None is allowed"
)
PAIRS = [(1,), (1, 2, 3), (None,), (1, 0), (0, 1), (None, 0), (True, 1), (1, "2"), [1, 2], (1, 2_147_484)]
NOT_A_CLASSIFIER = (
    "is not one: it needs a name and a method classify_retry(outcome, previous); "
    "classifier(function) makes one from a function"
)

REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("max_attempts", (0, -1, True, 2.0, "3", 2**10_000, HUGE), "a whole number of 1 or more or None is allowed"),
    ("max_backoff", (-0.1, True, "1", None, *TOO_MUCH), "a finite number of seconds (0 or more) is allowed"),
    ("backoff", (-1, False, "none", ExponentialRetryBackoffStrategy, [1], *TOO_MUCH), BACKOFF),
    *[
        (name, (0, 0.0, -1, True, "10", *TOO_MUCH), "a finite number of seconds above 0 or None is allowed")
        for name in ("operation_timeout", "operation_attempt_timeout")
    ],
    (
        "max_retry_after",
        (-0.1, True, None, "1", b"1", Decimal(1), 1j, [1], *TOO_MUCH),
        "a finite number of seconds (0 or more) is allowed",
    ),
    ("max_wait", (-1, "soon", True, *TOO_MUCH), "a finite number of seconds (0 or more) or None is allowed"),
    ("validate", (True, 5, "ready", dict), "a function of a response, or None is allowed"),
    ("deadline_header", ("", "X Y", 5, ("X-Y",), ("X-Y", "minutes"), ("", "date"), ("a", "date", "b")), HEADER),
    ("jitter", ("equal", "decorrelated", "", 1, None), "one of 'full', 'none' is allowed"),
    ("mode", ("legacy", "simple", "", 1, None, b"standard"), "one of 'standard', 'adaptive' is allowed"),
    ("enabled", (0, 1, None, "true"), "True or False is allowed"),
    ("timeout", (0, -1, True, "3", b"5", dict, Decimal(5), MOST, *TOO_MUCH, *PAIRS), TIMES),
    ("pacing", ("on", ""), "one of 'announced', 'off' is allowed"),
    ("pacing", (None, 5, [DIALECT, "x"], iter([DIALECT])), PACING),
    ("allowed_methods", ("GET", b"GET", 1, iter(["GET"])), f"{METHODS}, or None for all methods, is allowed"),
    *[
        ("allowed_methods", (["GET", bad],), f"{METHODS} is allowed, and {bad!r} is not one")
        for bad in ("", "GE T", 1, b"GET", "GÉT", "a/b")
    ],
    *[
        ("allowed_methods", ([bad],), f"{METHODS} is allowed, and {bad!r} is not one: None means all")
        for bad in ("*", "all", "ANY", "none")
    ],
    ("retry_status_codes", ("503", b"503", 503, None, iter([503])), STATUSES),
    *[
        ("retry_status_codes", ([503, bad],), f"{STATUSES}, and {bad!r} is not one")
        for bad in (True, "503", 503.0, 99, 600)
    ],
    ("quota", (-1, True, "500", "payof", *TOO_MUCH), QUOTA),
    ("classifiers", (CLASSIFIER, Both(), "", b"", 5, None), CLASSIFIERS),
    *[("classifiers", ([CLASSIFIER, bad],), f"{CLASSIFIERS}, and {bad!r} {NOT_A_CLASSIFIER}") for bad in (1, len)],
    ("idempotency_key", (1, "key", None), "True, False, or a function that makes a key is allowed"),
    ("aws_config", (" ", "", 1, None), "True, False, or the name of a profile is allowed"),
    ("scope", (1, "scope"), "a function or None is allowed"),
    ("telemetry", ("otel", b"", 5, None), TELEMETRY),
    *[("telemetry", ([bad],), f"{TELEMETRY}, and {bad!r} is not one") for bad in ("open-telemetry", "", 5, ["log"])],
    ("listeners", (LISTENER, Both(), "", b"", 5, None), LISTENERS),
    *[
        ("listeners", ([LISTENER, bad],), f"{LISTENERS}, and {bad!r} has none of {EVENTS}")
        for bad in (1, RetryListener)
    ],
]


@pytest.mark.parametrize(("name", "values", "allowed"), REFUSED)
def test_what_is_not_allowed_is_refused_with_what_is(name, values, allowed) -> None:
    """The error names the option, the value and its source, and says what is allowed, in these words."""
    for value in values:
        with pytest.raises(RetryConfigError) as caught:
            RetryConfig(**{name: value})
        shown = "<int that cannot be shown>" if value is HUGE else repr(value)
        assert f"{name}={shown} (from code): {allowed}" == str(caught.value)


def test_a_classifier_with_a_priority_that_is_none_is_named() -> None:
    """The refusal names the classifier and says which priorities there are."""
    with pytest.raises(RetryConfigError, match=r"of the classifier 'odd', priority=5: an attribute or a property"):
        RetryConfig(classifiers=[AtNoPriority()])


KEPT: list[tuple[str, Any, Any]] = [
    *[("max_attempts", value, value) for value in (None, 1, 2, sys.maxsize, 2**10_000 - 1)],
    *[("max_backoff", value, value) for value in (0, 0.5, 7, MOST)],
    *[("backoff", value, value) for value in (None, 0, 0.5, max, ExponentialRetryBackoffStrategy())],
    *[("operation_timeout", value, value) for value in (None, 5e-324, 0.5, 7)],
    *[("max_retry_after", value, value) for value in (0, 1.5, 10**300, MOST, -0.0)],
    *[("mode", value, value.lower()) for value in ("Standard", "adaptive")],
    *[("jitter", kind, kind.value) for kind in (Jitter.FULL, Jitter.NONE)],
    *[("enabled", value, value) for value in (True, False)],
    *[("timeout", value, value) for value in (None, 0.5, 3, 2_147_483, (0.5, 3), (None, 2), (2, None), TIMEOUT)],
    ("pacing", "Off", "off"),
    ("pacing", DIALECT, (DIALECT,)),
    ("pacing", [DIALECT], (DIALECT,)),
    ("allowed_methods", None, None),
    *[("allowed_methods", value, frozenset()) for value in ([], (), {})],
    *[("allowed_methods", value, frozenset({"GET", "POST"})) for value in (["get", "POST"], {"Get": 1, "post": 2})],
    ("allowed_methods", {"M-SEARCH", "!#$%&'*+-.^_`|~09az"}, frozenset({"M-SEARCH", "!#$%&'*+-.^_`|~09AZ"})),
    ("retry_status_codes", (), frozenset()),
    ("retry_status_codes", [100, 599], frozenset({100, 599})),
    ("retry_status_codes", range(500, 503), frozenset({500, 501, 502})),
    *[("quota", value, value) for value in (None, 0, 0.5, 7, MOST, BUCKET, "payoff")],
    ("quota", "Payoff", "payoff"),
    ("classifiers", [], ()),
    ("classifiers", iter([CLASSIFIER]), (CLASSIFIER,)),
    ("classifiers", only(CLASSIFIER), only(CLASSIFIER)),
    *[("idempotency_key", value, value) for value in (True, False, len)],
    *[("aws_config", value, value) for value in (True, False, "fleet")],
    *[("scope", value, value) for value in (None, len)],
    ("telemetry", [], ()),
    ("telemetry", ["prometheus", "OTel", "log", "otel"], ("log", "otel", "prometheus")),
    ("listeners", [], ()),
    ("listeners", iter([LISTENER]), (LISTENER,)),
]


@pytest.mark.parametrize(("name", "given", "kept"), KEPT)
def test_what_is_allowed_is_kept_in_one_form(name, given, kept) -> None:
    """Both ends of a range, 0 and empty values are kept; words in lower case, methods in upper case, sets frozen."""
    value = getattr(RetryConfig(**{name: given}), name)
    assert (kept, type(kept)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max_backof", "did you mean 'max_backoff'?"),
        ("total", "did you mean 'max_attempts'?"),
        ("status_forcelist", "did you mean 'retry_status_codes'?"),
        ("retry_on", "did you mean 'retry_status_codes'?"),
        ("wait_exponential", "did you mean 'backoff'?"),
        ("on_backoff", "did you mean 'listeners'?"),
        ("qqqqq", f"there are {', '.join(DEFAULTS)}"),
    ],
)
def test_a_name_that_is_none_leads_to_one_that_is(name, hint) -> None:
    """The words of urllib3, tenacity and others, and misspelt ones lead to what is meant."""
    for make in (RetryAdapter, RetryConfig().replace, RetryConfig.from_environment):
        with pytest.raises(TypeError) as caught:
            make(**{name: 1})
        assert f"there is no option {name!r}: {hint}" in str(caught.value)
