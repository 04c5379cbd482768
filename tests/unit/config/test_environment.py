"""Options from environment variables (contract 10.2)."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import RetryAdapter, RetryConfig, RetryConfigError, RetryConfigWarning, SimpleRetryStrategy
from requests_smithy_retry.config.retry_config import OPTIONS
from requests_smithy_retry.config.sources import VARIABLES, resolve, warn_of_typos


def test_every_plain_option_has_a_variable():
    """Each option has a variable, except objects and the option that says whether to read the environment."""
    plain = {name for name, option in OPTIONS.items() if not option.not_from_environment}
    assert {f"SMITHY_RETRY_{name.upper()}": name for name in plain} == VARIABLES


ROWS = [
    ("MAX_ATTEMPTS", "5", 5),
    ("MAX_ATTEMPTS", " 5\t", 5),
    ("MODE", "Adaptive", "adaptive"),
    ("RETRY_SPEC", "2.0", "2.0"),
    ("INITIAL_BACKOFF", "0.25", 0.25),
    ("MAX_PERMIT_WAIT", "none", None),
    ("MAX_BACKOFF", "5s", 5.0),
    ("MAX_BACKOFF", "250ms", 0.25),
    ("MAX_BACKOFF", "2 min", 120.0),
    ("MAX_BACKOFF", "1e1", 10.0),
    ("MAX_BACKOFF", ".5", 0.5),
    ("QUOTA", "none", None),
    ("QUOTA", "100", 100),
    ("QUOTA", "2.5", 2.5),
    ("TIMEOUT", "3", 3),
    ("TIMEOUT", "3.5, 10s", (3.5, 10.0)),
    ("TIMEOUT", "none, 10", (None, 10)),
    ("ALLOWED_METHODS", "get, POST,", frozenset({"GET", "POST"})),
    ("ALLOWED_METHODS", "None", None),
    ("ALLOWED_METHODS", ",", frozenset()),
    ("ALLOWED_METHODS", "GET", frozenset({"GET"})),
    ("RETRY_STATUS_CODES", "503", frozenset({503})),
    ("RETRY_STATUS_CODES", "429, 503", frozenset({429, 503})),
    ("IDEMPOTENCY_HEADER", "X-Key", "X-Key"),
    ("JITTER", "none", "none"),
    ("AWS_CONFIG", "no", False),
    *[("RESUME", text, True) for text in ("true", "YES", "On", "1")],
    *[("RESUME", text, False) for text in ("false", "No", "OFF", "0")],
]


@pytest.mark.parametrize(("name", "text", "value"), ROWS)
def test_text_is_read_as_people_write_it(name, text, value):
    """Blanks are stripped; numbers, units, booleans, sets and "none" are understood by each option's kind."""
    config = resolve(RetryConfig(), {f"SMITHY_RETRY_{name}": text})
    assert (value, f"environment variable SMITHY_RETRY_{name}") == (
        getattr(config, name.lower()),
        config.source(name.lower()),
    )


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("MAX_ATTEMPTS", "many", "a whole number of 1 or more or None is allowed"),
        ("MAX_ATTEMPTS", "0", "a whole number of 1 or more or None is allowed"),
        ("MAX_ATTEMPTS", "5s", "a whole number of 1 or more or None is allowed"),
        ("MAX_BACKOFF", "inf", "seconds (0 or more) is allowed"),
        ("MAX_BACKOFF", "-1", "seconds (0 or more) is allowed"),
        ("MAX_BACKOFF", "9" * 5000, "seconds (0 or more) is allowed"),
        ("QUOTA", "5s", "number of tokens"),
        ("QUOTA", "5s", "tokens"),
        ("ENABLED", "maybe", "True or False is allowed"),
        ("RETRY_STATUS_CODES", "503, x", "'x' is not one"),
        ("RETRY_STATUS_CODES", "5030", "5030 is not one"),
        ("ALLOWED_METHODS", "GE T", "'GE T' is not one"),
        ("TIMEOUT", "3, x", "a (connect, read) pair"),
        ("MODE", "legacy", "one of"),
    ],
)
def test_bad_text_is_refused_with_the_variable_named(name, text, allowed):
    """The error names option, text, variable and what is allowed."""
    with pytest.raises(RetryConfigError) as caught:
        resolve(RetryConfig(), {f"SMITHY_RETRY_{name}": text})
    message = str(caught.value)
    assert message.startswith(f"{name.lower()}={text!r} (from environment variable SMITHY_RETRY_{name}): ")
    assert allowed in message


@given(st.sampled_from(sorted(VARIABLES)), st.text(max_size=30))
def test_any_text_gives_a_config_or_a_clear_error(variable, text):
    """For any text in a variable, nothing but RetryConfigError is raised."""
    environ = {variable: text, "AWS_CONFIG_FILE": "/dev/null"}
    try:
        resolve(RetryConfig(), environ)
    except RetryConfigError:
        pass


def test_blank_is_the_same_as_unset():
    """An empty variable, or one of blanks, sets nothing."""
    config = RetryConfig()
    assert config is resolve(config, dict.fromkeys(VARIABLES, "  "))


def test_code_beats_the_environment():
    """An option set in code stays, even at its default; the rest is filled in."""
    environ = {"SMITHY_RETRY_MAX_ATTEMPTS": "7", "SMITHY_RETRY_QUOTA": "10"}
    with pytest.warns(RetryConfigWarning, match=r"max_attempts=3 \(from code\) wins$"):
        config = resolve(RetryConfig(max_attempts=3), environ)
    assert (3, "code", 10) == (config.max_attempts, config.source("max_attempts"), config.quota)


def test_the_kill_switch_beats_code():
    """SMITHY_RETRY_ENABLED=false wins over enabled=True, and no other variable is looked at then."""
    config = resolve(RetryConfig(enabled=True), {"SMITHY_RETRY_ENABLED": "off", "SMITHY_RETRY_MAX_ATTEMPTS": "bad"})
    assert (False, "environment variable SMITHY_RETRY_ENABLED") == (config.enabled, config.source("enabled"))


def test_enabled_true_does_not_beat_code():
    """The switch only switches off."""
    with pytest.warns(RetryConfigWarning, match=r"enabled=False \(from code\) wins$"):
        assert not resolve(RetryConfig(enabled=False), {"SMITHY_RETRY_ENABLED": "true"}).enabled


def test_trust_env_false_ignores_everything():
    """Without trust_env neither values, nor bad values, nor the kill switch count."""
    config = RetryConfig(trust_env=False)
    assert config is resolve(config, {"SMITHY_RETRY_ENABLED": "false", "SMITHY_RETRY_MODE": "bad"})


def test_an_adapter_reads_the_environment_when_it_is_made(monkeypatch):
    """A variable that is set after the import counts; one that is set after the adapter was made does not."""
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "7")
    adapter = RetryAdapter()
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "9")
    assert (7, 7) == (adapter.retry_config.max_attempts, adapter.strategy.max_attempts)
    assert 9 == RetryConfig.from_environment().max_attempts
    with pytest.warns(RetryConfigWarning, match=r"^max_attempts=9 \(from environment variable SMITHY_RETRY_MAX_ATTEM"):
        assert 2 == RetryConfig.from_environment(max_attempts=2).max_attempts
    assert RetryConfig().max_attempts is None


def test_a_strategy_keeps_its_own_policy(monkeypatch):
    """Beside a given strategy the environment sets only options of the adapter, the kill switch among them."""
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "7")
    monkeypatch.setenv("SMITHY_RETRY_TIMEOUT", "2")
    with pytest.warns(RetryConfigWarning, match="'7' .*it has no effect, because it belongs to the strategy"):
        adapter = RetryAdapter(strategy=SimpleRetryStrategy(max_attempts=2))
    assert (2, 2) == (adapter.retry_config.max_attempts, adapter.retry_config.timeout)
    monkeypatch.setenv("SMITHY_RETRY_ENABLED", "0")
    assert not RetryAdapter(strategy=SimpleRetryStrategy()).retry_config.enabled


def test_beside_a_strategy_its_variables_are_not_looked_at(monkeypatch):
    """A bad variable of a strategy's option is ignored; a bad one of an adapter's option is still an error."""
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "bad")
    with pytest.warns(RetryConfigWarning, match="'bad' .*it has no effect"):
        assert 2 == RetryAdapter(strategy=SimpleRetryStrategy(max_attempts=2)).retry_config.max_attempts
    monkeypatch.setenv("SMITHY_RETRY_TIMEOUT", "bad")
    with pytest.raises(RetryConfigError, match=r"^timeout='bad'"):
        RetryAdapter(strategy=SimpleRetryStrategy())


def test_an_adapter_warns_of_a_variable_that_sets_nothing(monkeypatch):
    """The adapter's constructor warns of an unknown variable with our prefix."""
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATEMPTS", "5")
    with pytest.warns(RetryConfigWarning, match="SMITHY_RETRY_MAX_ATEMPTS sets nothing"):
        RetryAdapter()


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("SMITHY_RETRY_MAX_ATEMPTS", "did you mean SMITHY_RETRY_MAX_ATTEMPTS?"),
        ("SMITHY_RETRY_QQQQQQQQQQQQQQQQQQQQ", "there are SMITHY_RETRY_MODE, "),
        ("SMITHY_RETRY_max_attempts", "did you mean SMITHY_RETRY_MAX_ATTEMPTS?"),
        ("SMITHY_RETRY_SCOPE", "the option 'scope' can only be set in code"),
        ("SMITHY_RETRY_TRUST_ENV", "the option 'trust_env' can only be set in code"),
        ("SMITHY_RETRY_TOTAL", "did you mean SMITHY_RETRY_MAX_ATTEMPTS?"),
        ("SMITHY_RETRY_BEFORE_SLEEP", "the option 'listeners' can only be set in code"),
    ],
)
def test_a_variable_that_sets_nothing_is_warned_about_once(variable, hint):
    """The first time a warning gives the nearest name; after that there is silence."""
    with pytest.warns(RetryConfigWarning) as caught:
        warn_of_typos({variable: "5", "HOME": "x"})
    assert [True] == [hint in str(warning.message) for warning in caught]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_typos({variable: "5"})


def test_each_variable_that_sets_nothing_is_warned_about():
    """A warning about one does not stand for another one."""
    with pytest.warns(RetryConfigWarning) as caught:
        warn_of_typos({"SMITHY_RETRY_MODES": "adaptive", "SMITHY_RETRY_QUOTAS": "5"})
    named = [str(warning.message).split()[0].rstrip(":") for warning in caught]
    assert ["SMITHY_RETRY_MODES", "SMITHY_RETRY_QUOTAS"] == named
