"""Options that cannot be had together are refused with both named; what nobody set contradicts nothing."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from urllib3.util.retry import Retry

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    RetryConfigWarning,
    RetryOptions,
    StandardRetryStrategy,
    TokenBucket,
    only,
)
from requests_smithy_retry.quotas import PayoffTokenBucket

pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore:.*it has no effect:requests_smithy_retry.RetryConfigWarning"),
]

BUCKET = TokenBucket(5)
URL = "redis://127.0.0.1:1/0"


def make_bucket(scope: str) -> TokenBucket:
    """Make the bucket of a scope."""
    return TokenBucket(5)


NO_QUEUE = "only the quota 'payoff' waits for a service, and one on Redis"
PUBLISHED = f"it asks for the published bucket, and {NO_QUEUE}; quota='payoff' asks for that"
VOID: dict[tuple[str, str], tuple[list[Any], str]] = {
    ("patience", "quota"): ([5, None, BUCKET, make_bucket], NO_QUEUE),
    ("patience", "retry_spec"): (["2.0", "2.1"], PUBLISHED),
    ("patience", "aws_config"): ([True], PUBLISHED),
    ("max_backoff", "backoff"): ([0, max], "it only bounds a backoff that doubles"),
    ("retry_status_codes", "classifiers"): ([only()], "only the default classifiers use it"),
    ("validate", "classifiers"): ([only()], "only the default classifiers use it"),
    ("aws_config", "trust_env"): ([False], "without trust_env no AWS settings are read"),
}
"""Each pair of which the first option would do nothing, beside these values of the second one, and why.

All other pairs go together. Bounds of time and caps do: each of them holds, whichever ends an operation first. So does
what ``enabled=False`` and ``max_attempts=1`` put out of use: they are there to switch retries off and nothing else.
"""

SAMPLES: dict[str, list[Any]] = {
    "mode": ["standard", "adaptive"],
    "max_attempts": [1, 5],
    "retry_spec": ["2.0", "2.1"],
    "backoff": [None, 0, max],
    "jitter": ["none", "full"],
    "quota": [5, None, "payoff", BUCKET, PayoffTokenBucket(), make_bucket, URL],
    "timeout": [3, (1, 2), None],
    "pacing": ["off"],
    "allowed_methods": [{"GET", "POST"}, None],
    "retry_status_codes": [{503}],
    "idempotency_key": [True, str],
    "scope": [str],
    "on_unauthorized": [len, None],
    "validate": [len],
    "deadline_header": ["X-Deadline"],
    "classifiers": [only(), ()],
    "listeners": [()],
    "telemetry": [()],
    "aws_config": [True, False],
    "trust_env": [True, False],
    "max_idle": [4, 90],
    **{name: [True, False] for name in ("resume", "raise_on_status", "enabled")},
}
"""Values of each option in code; 2.5 of those that are not here."""
OPTIONS = [*RetryOptions.__annotations__]


def samples(name: str) -> list[Any]:
    return SAMPLES.get(name, [2.5])


def asked(name: str) -> Any:
    """The first value of an option that asks for something."""
    return next(value for value in samples(name) if value is not None and value is not False)


@pytest.mark.parametrize("name", OPTIONS)
def test_of_each_pair_of_options_it_is_known_whether_one_makes_the_other_void(name) -> None:
    """Beside each value of the other option, an option has an effect or is refused by name."""
    for other in {*OPTIONS} - {name}:
        void = [value for value in samples(other) if refusal(name, **{name: asked(name), other: value})]
        assert VOID.get((name, other), ([], ""))[0] == void, other


def refusal(name: str, **options: Any) -> RetryConfigError | None:
    """Return the refusal of a config with these options for the sake of one of them."""
    try:
        RetryConfig(**options)
    except RetryConfigError as error:
        return error if error.option == name else None
    return None


@pytest.mark.parametrize(("pair", "void"), VOID.items())
def test_the_refusal_names_both_and_says_why(pair, void) -> None:
    """Each has its value and its source, and the second is refused in ``replace`` as well, whichever comes first."""
    (name, other), (values, why) = pair, void
    one = {name: asked(name)}
    for two in ({other: value} for value in values):
        said = f"only one of {name} and {other}={two[other]!r} (from code) is allowed: {why}"
        for make, options in (
            (RetryConfig, {**one, **two}),
            (RetryConfig(**one).replace, two),
            (RetryConfig(**two).replace, one),
        ):
            with pytest.raises(RetryConfigError) as caught:
                make(**options)
            error = caught.value
            assert (name, "code", said) == (error.option, error.source, error.allowed)
            assert asked(name) == error.value or repr(asked(name)) == repr(error.value)


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 0, "retry_spec": "2.1"},
        {"patience": 0, "quota": 100},
        {"patience": 9, "retry_spec": "2.1", "quota": "payoff"},
        {"trust_env": False, "aws_config": False},
    ],
)
def test_what_goes_together_is_allowed(options) -> None:
    """Only the value that makes the other one void contradicts it, and one that asks for nothing does not."""
    config = RetryConfig(**options)
    assert all(config.is_given(name) for name in options)


def as_text(name: str, value: Any) -> str | None:
    """The text that the variable of an option would hold; None: no text stands for it."""
    if value is None and name == "allowed_methods":
        return "all"
    if isinstance(value, (set, tuple)):
        return ",".join(map(str, value))
    return str(value) if value is None or isinstance(value, (int, float, str)) else None


IN_CODE = {"idempotency_key", "scope", "on_unauthorized", "classifiers", "validate", "listeners", "trust_env"}
TEXTS = [
    (name, text) for name in OPTIONS if name not in IN_CODE for value in samples(name) if (text := as_text(name, value))
]
CODE = [{name: value} for name in OPTIONS for value in samples(name) if (name, value) != ("trust_env", False)]
CODE += [{"max_retries": value} for value in (3, Retry(5, status_forcelist=[503], respect_retry_after_header=False))]


@pytest.mark.parametrize("code", CODE, ids=",".join)
def test_no_variable_stops_a_program_that_says_the_opposite(code, monkeypatch, tmp_path) -> None:
    """For each option in code and each variable, the option keeps its value, and a void variable does nothing."""
    (tmp_path / "config").write_text("[default]\nmax_attempts = 4\n[profile True]\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    asked_for = RetryAdapter(**code).retry_config
    names = [name for name in OPTIONS if asked_for.source(name) in ("code", "max_retries")]
    for variable, text in TEXTS:
        with monkeypatch.context() as patch:
            patch.setenv(f"SMITHY_RETRY_{variable.upper()}", text)
            config = RetryAdapter(**code).retry_config
        switched_off = (variable, text) == ("enabled", "False")
        kept = [name for name in names if name != "enabled"] if switched_off else names
        assert {name: getattr(asked_for, name) for name in kept} == {name: getattr(config, name) for name in kept}
        RetryConfig(**{name: getattr(config, name) for name in OPTIONS if config.is_given(name)})  # nothing contradicts


LISTED = Retry(3, status_forcelist=[500])
THE_STRATEGYS = "it belongs to the strategy that the adapter was given"


@pytest.mark.parametrize(
    ("code", "name", "text", "shown", "why"),
    [
        ({"max_attempts": 4}, "max_attempts", "2", "2", "max_attempts=4 (from code) wins"),
        ({"max_retries": LISTED}, "raise_on_status", "no", "False", "raise_on_status=True (from max_retries) wins"),
        ({"quota": 100}, "patience", "9", "9", f"quota=100 (from code) wins, and {NO_QUEUE}"),
        ({"strategy": StandardRetryStrategy()}, "patience", "9", "'9'", THE_STRATEGYS),
    ],
)
def test_a_variable_that_does_nothing_is_warned_of_once(code, name, text, shown, why, monkeypatch) -> None:
    """The warning names the variable, its value and what wins, at the line that made the adapter, once."""
    variable = f"SMITHY_RETRY_{name.upper()}"
    monkeypatch.setenv(variable, text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            RetryAdapter(**code)
    said = f"{name}={shown} (from environment variable {variable}): it has no effect, because {why}"
    assert [(said, __file__)] == [(str(warning.message), warning.filename) for warning in caught]


def test_a_librarys_function_that_is_not_called_is_warned_of() -> None:
    """Its users would otherwise take an answer for good that is none."""
    with pytest.warns(RetryConfigWarning) as caught:
        RetryAdapter(defaults=RetryConfig(validate=len), classifiers=only())
    why = "it has no effect, because classifiers=only() (from code) wins, and only the default classifiers use it"
    said = f"validate=<built-in function len> (from the library's defaults): {why}"
    assert [(said, __file__)] == [(str(warning.message), warning.filename) for warning in caught]


def test_a_source_is_told_of_in_a_sentence() -> None:
    """Also where one option sets another."""
    words = r"^quota=500 \(from retry_spec 2.0\): beside strategy='shared' only 'payoff' is allowed"
    with pytest.raises(RetryConfigError, match=words):
        RetryAdapter(strategy="shared", retry_spec="2.0")


@pytest.mark.parametrize(
    ("code", "variables"),
    [
        ({"max_attempts": 4}, {"MAX_ATTEMPTS": "4"}),
        ({"max_attempts": 4}, {"MAX_ATTEMPTS": " "}),
        ({"max_attempts": 4, "trust_env": False}, {"MAX_ATTEMPTS": "2"}),
        ({"max_attempts": 4}, {"MAX_ATTEMPTS": "2", "ENABLED": "no"}),
        ({"defaults": RetryConfig(max_attempts=4)}, {"MAX_ATTEMPTS": "2"}),
        ({"defaults": RetryConfig(quota=100)}, {"PATIENCE": "9"}),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_is_as_it_says_is_not_warned_of(code, variables, monkeypatch) -> None:
    """A variable that says the same, one that was to be ignored, and a library's default that gives way are no news."""
    for name, text in variables.items():
        monkeypatch.setenv(f"SMITHY_RETRY_{name}", text)
    RetryAdapter(**code)
