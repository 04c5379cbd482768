"""Options that cannot be had together are refused with both named; what nobody set contradicts nothing."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest
from urllib3.util.retry import Retry

from requests_smithy_retry import (
    PayoffTokenBucket,
    RateLimiterSettings,
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    StandardRetryStrategy,
    TokenBucket,
)
from requests_smithy_retry.config.retry_config import OPTIONS, contradictions
from requests_smithy_retry.config.sources import VARIABLES, resolve
from requests_smithy_retry.features.redis import RedisQuota

pytestmark = pytest.mark.once

BUCKET = TokenBucket(5)
PAYOFF_BUCKET = PayoffTokenBucket()
URL = "redis://127.0.0.1:1/0"
ON_REDIS = RedisQuota(URL)


def make_bucket(scope: str) -> TokenBucket:
    """Make the bucket of a scope."""
    return TokenBucket(5)


NO_LINE = "only the quota 'payoff' waits for a service, and one on Redis"
DEFAULTS_ONLY = "only the default classifiers go by it"
NO_SETTINGS = "without trust_env no AWS settings are read"

PUBLISHED = f"it asks for the published bucket, and {NO_LINE}; quota='payoff' asks for that"

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"patience": 9, "retry_spec": "2.1"}, PUBLISHED),
    ({"patience": 5.0, "retry_spec": "2.0"}, PUBLISHED),
    ({"patience": 9, "aws_config": True}, PUBLISHED),
    ({"patience": 9, "quota": BUCKET}, NO_LINE),
    ({"patience": 9, "quota": make_bucket}, NO_LINE),
    ({"patience": 9, "quota": 100}, NO_LINE),
    ({"retry_status_codes": frozenset({503}), "default_classifiers": False}, DEFAULTS_ONLY),
    ({"error_parser": len, "default_classifiers": False}, DEFAULTS_ONLY),
    ({"aws_config": True, "trust_env": False}, NO_SETTINGS),
    ({"aws_config": "fleet", "trust_env": False}, NO_SETTINGS),
]


@pytest.mark.parametrize(("options", "why"), REFUSED)
def test_options_that_contradict_each_other_are_refused(options, why):
    """The error has both, each with its value and source, and says why only one of them can be had."""
    (name, value), (other, other_value) = options.items()
    with pytest.raises(RetryConfigError) as caught:
        RetryConfig(**options)
    error = caught.value
    said = f"only one of {name} and {other}={other_value!r} (from code) is allowed: {why}"
    assert (name, value, "code", said) == (error.option, error.value, error.source, error.allowed)


@pytest.mark.parametrize(("options", "why"), REFUSED)
def test_neither_does_the_second_one_come_in_later(options, why):
    """The second of two contradictory options is refused in ``replace`` as well, whichever comes first."""
    (first, second) = options.items()
    for now, later in ((first, second), (second, first)):
        with pytest.raises(RetryConfigError, match=why):
            RetryConfig(**dict([now])).replace(**dict([later]))


@pytest.mark.parametrize(
    "options",
    [
        {"quota": BUCKET},
        {"quota": "payoff"},
        {"quota": "payoff", "patience": 9},
        {"quota": ON_REDIS, "patience": 9},
        {"default_classifiers": False},
        {"default_classifiers": True, "retry_status_codes": {503}, "error_parser": len},
        {"patience": 0, "retry_spec": "2.1"},
        {"patience": 0, "quota": 100},
        {"patience": 9, "retry_spec": "2.1", "quota": "payoff"},
        {"patience": 9, "aws_config": False},
        {"trust_env": False},
        {"trust_env": False, "aws_config": False},
        {"trust_env": True, "aws_config": True},
    ],
)
def test_what_goes_together_is_allowed(options):
    """Only options that were set can contradict, and only with the value that makes the other one void."""
    config = RetryConfig(**options)
    assert all(config.is_given(name) for name in options)


SAMPLES: dict[str, list[Any]] = {
    "mode": ["standard", "adaptive"],
    "max_attempts": [1, 5],
    "retry_spec": ["2.0", "2.1"],
    "jitter": ["none", "full"],
    "quota": [5, None, "payoff", BUCKET, PAYOFF_BUCKET, make_bucket, URL],
    "rate_limiter": [RateLimiterSettings()],
    "timeout": [3, (1, 2), None],
    "pacing": ["off"],
    "allowed_methods": [{"GET", "POST"}, None],
    "retry_status_codes": [{503}],
    "idempotency_header": ["X-Key"],
    "idempotency_key": [True, str],
    "scope": [str],
    "on_unauthorized": [len, None],
    "classifiers": [()],
    "error_parser": [len, None],
    "listeners": [()],
    "telemetry": [()],
    "models": [()],
    "aws_config": [True, False],
    "trust_env": [True],  # with False no variable is read
}
"""Values of each option in code; of those that are not here, booleans have both and numbers one."""

MAX_RETRIES = [3, Retry(5, status_forcelist=[503], respect_retry_after_header=False)]


def samples(name: str) -> list[Any]:
    default = RetryConfig.__dataclass_fields__[name].default
    return SAMPLES.get(name, [True, False] if isinstance(default, bool) else [2.5])


def as_text(value: Any) -> str | None:
    """The text that a variable would hold; None: no text stands for it."""
    if isinstance(value, (set, tuple)):
        return ",".join(map(str, value))
    return None if value in (BUCKET, PAYOFF_BUCKET, make_bucket) else str(value)


CODE = [{name: value} for name in OPTIONS for value in samples(name)] + [
    {"max_retries": value} for value in MAX_RETRIES
]
TEXTS = [(variable, text) for variable, name in VARIABLES.items() for text in map(as_text, samples(name)) if text]


VOID: dict[tuple[str, str], list[Any]] = {
    ("patience", "quota"): [5, None, BUCKET, make_bucket],
    ("patience", "retry_spec"): ["2.0", "2.1"],
    ("patience", "aws_config"): [True],
    ("retry_status_codes", "default_classifiers"): [False],
    ("error_parser", "default_classifiers"): [False],
    ("aws_config", "trust_env"): [False],
    ("on_unauthorized", "max_attempts"): [1],
}
"""Each pair of which the first option would do nothing, beside these values of the second one.

All other pairs go together. Bounds of time and caps do: each of them holds, whichever ends an operation first. So does
what ``enabled=False`` and ``max_attempts=1`` put out of use: they are there to switch retries off and nothing else. A
request with new credentials is no retry.
"""

PAIRS = [(name, other) for name in OPTIONS for other in OPTIONS if name != other]


@pytest.mark.parametrize(("name", "other"), PAIRS, ids="-".join)
def test_of_each_pair_of_options_it_is_known_whether_one_makes_the_other_void(name, other):
    """Beside each value of the other option, an option has an effect or is refused by name."""
    asked = next(value for value in [*SAMPLES.get(name, []), *samples(name)] if value not in (None, False))
    values = samples(other) + [False] * (other == "trust_env")
    assert VOID.get((name, other), []) == [value for value in values if refuses(name, **{name: asked, other: value})]


def refuses(name: str, **options: Any) -> bool:
    """Tell whether a config with these options is refused for the sake of one of them."""
    try:
        RetryConfig(**options)
    except RetryConfigError as error:
        return error.option == name
    return False


def test_the_table_of_void_options_names_options():
    """No row of it outlives its option."""
    assert set() == VOID.keys() - set(PAIRS)


@pytest.mark.parametrize("code", CODE, ids=",".join)
@pytest.mark.usefixtures("_empty_environment")
@pytest.mark.filterwarnings("ignore:.*it has no effect:requests_smithy_retry.RetryConfigWarning")
def test_no_variable_stops_a_program_that_says_the_opposite(code, monkeypatch):
    """For each option in code and each variable, the option keeps its value, and a void variable does nothing."""
    asked_for = RetryAdapter(**code).retry_config
    given = filter(asked_for.is_given, OPTIONS)
    names = [name for name in given if asked_for.source(name) in ("code", "max_retries")]
    for variable, text in TEXTS:
        monkeypatch.setenv(variable, text)
        config = RetryAdapter(**code).retry_config
        monkeypatch.delenv(variable)
        switched_off = (variable, text) == ("SMITHY_RETRY_ENABLED", "False")
        kept = [name for name in names if name != "enabled"] if switched_off else names
        assert {name: getattr(asked_for, name) for name in kept} == {name: getattr(config, name) for name in kept}
        assert not list(contradictions(config))


@pytest.fixture
def _empty_environment(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith(("AWS_", "SMITHY_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "config").write_text("[default]\nmax_attempts = 4\n[profile True]\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))


@pytest.mark.parametrize(
    ("code", "variables", "void"),
    [
        ({"quota": 100}, {"PATIENCE": "9"}, "patience"),
        ({"quota": make_bucket}, {"PATIENCE": "9"}, "patience"),
        ({"retry_status_codes": {500}}, {"DEFAULT_CLASSIFIERS": "no"}, "default_classifiers"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*it has no effect:requests_smithy_retry.RetryConfigWarning")
def test_a_variable_that_does_nothing_is_not_shown(code, variables, void):
    """The option set in code holds, the other one has its default in spite of its variable, and the rest holds."""
    environ = {f"SMITHY_RETRY_{name}": text for name, text in variables.items()}
    config = resolve(RetryConfig(**code), environ)
    assert RetryConfig.__dataclass_fields__[void].default == getattr(config, void)
    assert "default" == config.source(void)
    assert all(config.is_given(name.lower()) for name in variables if name.lower() != void)


@pytest.mark.filterwarnings("ignore:.*it has no effect:requests_smithy_retry.RetryConfigWarning")
def test_code_that_comes_later_voids_a_variable():
    """Options given beside a config that the environment has filled in beat it, too."""
    config = resolve(RetryConfig(), {"SMITHY_RETRY_PATIENCE": "9"})
    later = config.replace(quota=20)
    assert (20, "default", 5) == (later.quota, later.source("patience"), later.patience)


CODES = Retry(3, status_forcelist=[500])


@pytest.mark.parametrize(
    ("code", "name", "text", "shown", "why"),
    [
        ({"max_attempts": 4}, "max_attempts", "2", "2", "max_attempts=4 (from code) wins"),
        ({"max_retries": CODES}, "raise_on_status", "no", "False", "raise_on_status=True (from max_retries) wins"),
        ({"quota": 100}, "patience", "9", "9", f"quota=100 (from code) wins, and {NO_LINE}"),
        (
            {"strategy": StandardRetryStrategy()},
            *("patience", "9", "'9'", "it belongs to the strategy that the adapter was given"),
        ),
    ],
)
def test_a_variable_that_does_nothing_is_warned_of_once(code, name, text, shown, why, monkeypatch):
    """The warning names the variable, its value and what wins, at the line that made the adapter, once."""
    variable = f"SMITHY_RETRY_{name.upper()}"
    monkeypatch.setenv(variable, text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            RetryAdapter(**code)
    said = f"{name}={shown} (from environment variable {variable}): it has no effect, because {why}"
    assert [(said, __file__)] == [(str(warning.message), warning.filename) for warning in caught]


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
def test_what_is_as_it_says_is_not_warned_of(code, variables, monkeypatch):
    """A variable that says the same, one that was to be ignored, and a library's default that gives way are no news."""
    for name, text in variables.items():
        monkeypatch.setenv(f"SMITHY_RETRY_{name}", text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RetryAdapter(**code)


def test_two_variables_that_contradict_each_other_are_refused():
    """The error for two contradictory variables says that one of them would do nothing."""
    environ = {"SMITHY_RETRY_PATIENCE": "9", "SMITHY_RETRY_QUOTA": "100"}
    with pytest.raises(RetryConfigError, match=NO_LINE) as caught:
        resolve(RetryConfig(), environ)
    said = "patience=9 (from environment variable SMITHY_RETRY_PATIENCE): only one of patience and "
    assert said + "quota=100 (from environment variable SMITHY_RETRY_QUOTA)" in str(caught.value)


def test_patience_beside_a_retry_holds():
    """A translated Retry has the default quota, which waits; so it does where it is assigned later."""
    adapter = RetryAdapter(patience=10, max_retries=Retry(5, status_forcelist=[503]))
    assert (10, "payoff") == (adapter.retry_config.patience, adapter.retry_config.effective_quota)
    adapter.max_retries = Retry(4, status_forcelist=[503])
    assert (10, "payoff") == (adapter.retry_config.patience, adapter.retry_config.effective_quota)
