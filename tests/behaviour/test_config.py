"""A config: an immutable value that knows the source of each option (contract 10.1, 10.2)."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3.util.retry import Retry

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    RetryConfigWarning,
    RetryOptions,
    SimpleRetryStrategy,
)
from requests_smithy_retry.classifiers import HttpStatusCodeClassifier

NOT_FROM_ENVIRONMENT = {
    "idempotency_key",
    "scope",
    "classifiers",
    "validate",
    "listeners",
    "trust_env",
    "on_unauthorized",
}
"""The options that take objects, and the one that says whether to read the environment."""
VARIABLES = {f"SMITHY_RETRY_{name.upper()}": name for name in {*RetryOptions.__annotations__} - NOT_FROM_ENVIRONMENT}


@pytest.mark.parametrize("make", [RetryConfig, RetryConfig().replace, RetryAdapter])
def test_an_error_names_option_value_source_and_what_is_allowed(make) -> None:
    """A bad value is refused in one sentence that has everything."""
    with pytest.raises(RetryConfigError) as caught:
        make(max_attempts=0)
    assert "max_attempts=0 (from code): a whole number of 1 or more or None is allowed" == str(caught.value)


def test_each_value_knows_its_source() -> None:
    """Code, default and the chosen specification are told apart, also where code gives the default."""
    config = RetryConfig(backoff=None, retry_spec="2.0")
    names = ("backoff", "retry_spec", "max_attempts", "jitter")
    assert ["code", "code", "retry_spec 2.0", "default"] == [config.source(name) for name in names]
    assert (True, False) == (config.is_given("backoff"), config.is_given("quota"))
    with pytest.raises(TypeError, match="did you mean 'quota'"):
        config.source("quotas")


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, None), ({"retry_spec": "2.0"}, 3), ({"aws_config": True}, 3), ({"aws_config": True, "max_attempts": 5}, 5)],
)
def test_what_the_specification_decides_is_shown_as_it_is_in_force(options, expected) -> None:
    """The settings show the value in force, not the None that stands for it."""
    assert expected == {item.name: item.value for item in RetryConfig(**options).settings()}["max_attempts"]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: RetryConfig(), "default"),
        (lambda: RetryConfig(quota=500), "code"),
        (lambda: RetryConfig(retry_spec="2.1"), "retry_spec 2.1"),
        (lambda: RetryAdapter(max_retries=Retry(5)).retry_config, "default"),
        (lambda: RetryConfig.from_environment(aws_config=True), "environment variable AWS_RETRY_MODE"),
    ],
)
def test_the_quota_has_the_source_that_asks_for_it(make, expected, monkeypatch) -> None:
    """The published bucket comes from whatever option asks for it, and is no default."""
    monkeypatch.setenv("AWS_RETRY_MODE", "adaptive")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    assert expected == make().source("quota")


def test_a_config_is_shown() -> None:
    """In short, mode, attempts and what was set; as a table, each option in force with its source."""
    config = RetryConfig(retry_spec="2.0", allowed_methods=(), max_attempts=5, timeout=(1, None))
    assert (
        "RetryConfig(mode='standard' [default], max_attempts=5 [code], retry_spec='2.0' [code], timeout=(1, None) "
        "[code], allowed_methods=frozenset() [code])"
    ) == repr(config)
    assert [
        "option           value      source",
        "max_attempts     5          code",
        "retry_spec       2.0        code",
        "timeout          (1, None)  code",
        "allowed_methods  (none)     code",
    ] == config.explain(all=False).splitlines()
    lines = config.explain().splitlines()
    assert ["option", *RetryOptions.__annotations__] == [line.split()[0] for line in lines]
    rows = {line.split()[0]: [part.strip() for part in line.split("  ") if part][1:] for line in lines}
    assert ["500", "retry_spec 2.0"] == rows["quota"]
    assert ["408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529", "default"] == rows["retry_status_codes"]
    assert "every option has its default" == RetryConfig().explain(all=False)


@pytest.mark.parametrize(
    ("options", "plain"),
    [
        ({"timeout": None}, None),
        ({"timeout": 3}, 3),
        ({"timeout": (3, 5)}, "(3, 5)"),
        ({"jitter": "none"}, "none"),
        ({"enabled": False}, False),
        ({"retry_status_codes": {503, 429}}, [429, 503]),
        ({"listeners": ()}, []),
        ({"quota": "redis://:secret@cache/0"}, "redis://cache:6379/0"),
    ],
)
def test_a_setting_has_a_form_for_json(options, plain) -> None:
    """Values of JSON stay; sets are sorted lists; anything else is its text, without secrets."""
    (shown,) = [item.plain for item in RetryConfig(**options).settings() if item.name in options]
    assert plain == shown


def from_variables(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], **code: Any) -> RetryConfig:
    """Return the config of an adapter with these options, made in this environment."""
    for name, text in environ.items():
        monkeypatch.setenv(f"SMITHY_RETRY_{name}", text)
    return RetryConfig.from_environment(**code)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("MAX_ATTEMPTS", "5", 5),
        ("MAX_ATTEMPTS", " 5\t", 5),
        ("MAX_ATTEMPTS", "none", None),
        ("MODE", "Adaptive", "adaptive"),
        ("RETRY_SPEC", "2.0", "2.0"),
        *[("BACKOFF", text, 0.25) for text in ("0.25", "250ms")],
        *[("MAX_BACKOFF", text, 10) for text in ("10", "10s", "10 sec", "1e1", "1E1", "10000ms")],
        *[("MAX_BACKOFF", text, 120) for text in ("2m", "2 MIN", "120 S")],
        *[("MAX_BACKOFF", text, value) for text, value in ((".5", 0.5), ("1.1 ms", 0.0011), ("0.5h", 1800))],
        *[("QUOTA", text, value) for text, value in (("none", None), ("100", 100), ("2.5", 2.5))],
        *[("TIMEOUT", text, value) for text, value in (("3", 3), ("3.5, 10s", (3.5, 10.0)), ("none, 10", (None, 10)))],
        ("ALLOWED_METHODS", "get, POST,", frozenset({"GET", "POST"})),
        ("ALLOWED_METHODS", "GET, 123", frozenset({"GET", "123"})),
        ("ALLOWED_METHODS", "All", None),
        ("RETRY_STATUS_CODES", "503", frozenset({503})),
        ("RETRY_STATUS_CODES", "429, 503", frozenset({429, 503})),
        ("TELEMETRY", "log, OTel", ("log", "otel")),
        ("AWS_CONFIG", "no", False),
        ("DEADLINE_HEADER", "X-Deadline", ("X-Deadline", "seconds")),
        ("DEADLINE_HEADER", "X-Deadline, date", ("X-Deadline", "date")),
        *[("RESUME", text, True) for text in ("true", "YES", "On", "1")],
        *[("RESUME", text, False) for text in ("false", "No", "OFF", "0")],
    ],
)
def test_text_is_read_as_people_write_it(name, text, value, monkeypatch) -> None:
    """Blanks are stripped; numbers, units, booleans, sets and "none" are understood by each option's kind."""
    config, option = from_variables(monkeypatch, {name: text}), name.lower()
    assert (value, f"environment variable SMITHY_RETRY_{name}") == (getattr(config, option), config.source(option))


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        *[("MAX_ATTEMPTS", text, "a whole number of 1 or more or None is allowed") for text in ("many", "0", "5s")],
        *[("MAX_BACKOFF", text, "seconds (0 or more) is allowed") for text in ("inf", "-1", "9" * 5000, "1e400 h")],
        *[("MAX_BACKOFF", text, "seconds (0 or more) is allowed") for text in ("2 days", "2 2", "m")],
        ("QUOTA", "5s", "number of tokens"),
        ("ENABLED", "maybe", "True or False is allowed"),
        ("RETRY_STATUS_CODES", "503, x", "'x' is not one"),
        ("RETRY_STATUS_CODES", "5030", "5030 is not one"),
        ("ALLOWED_METHODS", "GE T", "'GE T' is not one"),
        ("TIMEOUT", "3, x", "two of them with a comma between (to connect, to read), or none is allowed; SMITHY"),
        ("MODE", "legacy", "one of"),
        ("BACKOFF", "by_status", "a finite number of seconds (0 or more), or none is allowed"),
        ("ALLOWED_METHODS", "GE T", "names of methods, separated by commas, or all for all methods, is allowed, and"),
        *[
            ("ALLOWED_METHODS", text, f"{word!r} is not one; SMITHY_RETRY_ALLOWED_METHODS='GET, HEAD' for example")
            for text, word in (("*", "*"), ("none", "none"), ("None", "None"), ("GET, all", "all"))
        ],
        *[(name, ",", "separated by commas") for name in ("ALLOWED_METHODS", "RETRY_STATUS_CODES", "TELEMETRY")],
        *[("DEADLINE_HEADER", text, "a header's name, alone or with seconds or date") for text in (",", ", date")],
    ],
)
def test_bad_text_is_refused_with_the_variable_named(name, text, allowed, monkeypatch) -> None:
    """The error names option, text, variable and what is allowed."""
    with pytest.raises(RetryConfigError) as caught:
        from_variables(monkeypatch, {name: text})
    message = str(caught.value)
    assert message.startswith(f"{name.lower()}={text!r} (from environment variable SMITHY_RETRY_{name}): ")
    assert allowed in message
    assert message.endswith(" for example")
    assert not re.search(r"function|strategy|collection|client|bucket|object|Dialect|pair", message)


@given(st.sampled_from(sorted(VARIABLES)), st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=30))
def test_any_text_gives_a_config_or_a_clear_error(variable, text) -> None:
    """For any text in a variable, nothing but RetryConfigError is raised."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(variable, text)
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        try:
            RetryConfig.from_environment()
        except RetryConfigError as error:
            assert error.source == f"environment variable {variable}"  # noqa: PT017


def test_blank_is_the_same_as_unset(monkeypatch) -> None:
    """An empty variable, or one of blanks, sets nothing."""
    for variable in VARIABLES:
        monkeypatch.setenv(variable, "  ")
    assert "every option has its default" == RetryConfig.from_environment().explain(all=False)


BAD = {"ENABLED": "false", "MODE": "bad"}


@pytest.mark.filterwarnings("ignore:.*it has no effect:requests_smithy_retry.RetryConfigWarning")
@pytest.mark.parametrize(
    ("code", "environ", "option", "value", "source"),
    [
        ({"max_attempts": 3}, {"MAX_ATTEMPTS": "7"}, "max_attempts", 3, "code"),
        ({"max_attempts": 3}, {"QUOTA": "10"}, "quota", 10, "environment variable SMITHY_RETRY_QUOTA"),
        # The kill switch wins, and no other variable is looked at then; but it only switches off.
        ({"enabled": True}, BAD, "enabled", False, "environment variable SMITHY_RETRY_ENABLED"),
        ({"enabled": False}, {"ENABLED": "true"}, "enabled", False, "code"),
        # Without trust_env neither values, nor bad values, nor the kill switch count.
        ({"trust_env": False}, BAD, "enabled", True, "default"),
        ({"trust_env": False}, BAD, "mode", "standard", "default"),
    ],
)
def test_code_beats_the_environment_but_for_the_kill_switch(code, environ, option, value, source, monkeypatch) -> None:
    """An option set in code stays, even at its default; the rest is filled in."""
    config = from_variables(monkeypatch, environ, **code)
    assert (value, source) == (getattr(config, option), config.source(option))


def test_an_adapter_reads_the_environment_when_it_is_made(monkeypatch) -> None:
    """A variable that is set after the import counts; one that is set after the adapter was made does not."""
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "7")
    adapter: Any = RetryAdapter()
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "9")
    assert (7, 7) == (adapter.retry_config.max_attempts, adapter.strategy.max_attempts)
    assert RetryConfig().max_attempts is None


def test_a_strategy_keeps_its_own_policy(monkeypatch) -> None:
    """Beside a given strategy the environment sets only options of the adapter, and a bad one of others is ignored."""
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "bad")
    monkeypatch.setenv("SMITHY_RETRY_TIMEOUT", "2")
    with pytest.warns(RetryConfigWarning, match="'bad' .*it has no effect, because it belongs to the strategy"):
        adapter = RetryAdapter(strategy=SimpleRetryStrategy(max_attempts=2))
    assert (2, 2) == (adapter.retry_config.max_attempts, adapter.retry_config.timeout)
    monkeypatch.setenv("SMITHY_RETRY_TIMEOUT", "bad")
    with pytest.raises(RetryConfigError, match=r"^timeout='bad'"):
        RetryAdapter(strategy=SimpleRetryStrategy())
    monkeypatch.setenv("SMITHY_RETRY_ENABLED", "0")
    assert not RetryAdapter(strategy=SimpleRetryStrategy()).retry_config.enabled


IN_CODE = "the option {!r} can only be set in code"


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("MAX_ATEMPTS", "did you mean SMITHY_RETRY_MAX_ATTEMPTS?"),
        ("QQQQQQQQQQQQQQQQQQQQ", "there are SMITHY_RETRY_MODE, "),
        ("max_attempts", "did you mean SMITHY_RETRY_MAX_ATTEMPTS?"),
        *[(name.upper(), IN_CODE.format(name)) for name in sorted(NOT_FROM_ENVIRONMENT)],
        ("TOTAL", "did you mean SMITHY_RETRY_MAX_ATTEMPTS?"),
        ("BEFORE_SLEEP", IN_CODE.format("listeners")),
    ],
)
def test_a_variable_that_sets_nothing_is_warned_about_once(variable, hint, monkeypatch) -> None:
    """The first adapter warns with the nearest name, whatever it warned of before; after that there is silence."""
    monkeypatch.setenv("SMITHY_RETRY_MODES", "adaptive")
    with pytest.warns(RetryConfigWarning, match="SMITHY_RETRY_MODES sets nothing"):
        RetryAdapter()
    monkeypatch.setenv(f"SMITHY_RETRY_{variable}", "5")
    with pytest.warns(RetryConfigWarning) as caught:
        RetryAdapter()
    assert [True] == [f"SMITHY_RETRY_{variable} sets nothing: {hint}" in str(warning.message) for warning in caught]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RetryAdapter(classifiers=[HttpStatusCodeClassifier()])
