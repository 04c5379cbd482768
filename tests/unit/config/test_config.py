"""RetryConfig: validation, sources, replacing, and how it is shown (contract 10.1, 10.3)."""

import copy
import dataclasses
import os
import pickle

import pytest
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, RetryConfig, RetryConfigError
from requests_smithy_retry.config.report import Setting
from requests_smithy_retry.config.retry_config import OPTIONS, RetryOptions
from requests_smithy_retry.config.sources import resolve


def test_the_fields_and_the_keywords_agree():
    """Every option is a field and a keyword of the same type; ``mount`` alone takes models without their endpoint."""
    assert list(OPTIONS) == [field.name for field in dataclasses.fields(RetryConfig) if field.init]
    keywords = {name: item.__forward_arg__ for name, item in RetryOptions.__annotations__.items()}
    fields = {name: RetryConfig.__annotations__[name] for name in OPTIONS}
    assert {**fields, "models": "Iterable[SmithyEndpoint | SmithyModel]"} == keywords


def test_every_default_is_allowed():
    """A config without options is valid, and each of its values is the table's default."""
    config = RetryConfig()
    assert {name: option.default for name, option in OPTIONS.items()} == {
        name: getattr(config, name) for name in OPTIONS
    }


def test_a_config_never_changes():
    """Assigning to an option is refused."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        RetryConfig().max_attempts = 5


@pytest.mark.parametrize(
    ("make", "source"),
    [
        (lambda: RetryConfig(max_attempts=0), "code"),
        (lambda: RetryConfig().replace(max_attempts=0), "code"),
        (lambda: RetryConfig().replace_from({"max_attempts": "somewhere"}, max_attempts=0), "somewhere"),
    ],
)
def test_an_error_names_option_value_source_and_what_is_allowed(make, source):
    """A bad value is refused in one sentence that has everything."""
    with pytest.raises(RetryConfigError) as caught:
        make()
    assert f"max_attempts=0 (from {source}): a whole number of 1 or more or None is allowed" == str(caught.value)


@pytest.mark.parametrize("make", [lambda: RetryConfig(nope=1), lambda: RetryConfig().replace(max_atempts=1)])
def test_an_unknown_option_is_a_type_error(make):
    """An unknown keyword is a TypeError, as with any function."""
    with pytest.raises(TypeError):
        make()


def test_each_value_knows_its_source():
    """Code, default and the chosen specification are told apart, also where code gives the default."""
    config = RetryConfig(max_attempts=3, throttling_backoff=2)
    names = ("max_attempts", "throttling_backoff", "initial_backoff", "quota")
    assert ["code", "code", "from retry_spec 2.1", "default"] == [config.source(name) for name in names]
    assert (True, False) == (config.is_given("max_attempts"), config.is_given("quota"))
    with pytest.raises(TypeError, match="did you mean 'quota'"):
        config.source("quotas")


def test_a_given_backoff_beats_that_of_the_specification():
    """Each of the two backoffs can be given by itself, and 0 is a value."""
    config = RetryConfig(retry_spec="2.0", initial_backoff=0)
    assert (0, 1.0) == (config.transient_base, config.throttling_base)
    config = RetryConfig(throttling_backoff=3)
    assert (0.05, 3) == (config.transient_base, config.throttling_base)


def test_the_worst_case_is_that_of_this_config():
    """The worst case has the attempts of this config, not those of the default."""
    assert 7 == RetryConfig(max_attempts=7, patience=0).worst_case().attempts


def test_replacing_keeps_the_other_values_and_sources():
    """``replace`` changes the named options, value and source; without a name it returns the same config."""
    config = RetryConfig(max_attempts=5)
    other = config.replace_from({"quota": "elsewhere"}, quota=None)
    assert (5, None, "code", "elsewhere") == (
        other.max_attempts,
        other.quota,
        other.source("max_attempts"),
        other.source("quota"),
    )
    assert "payoff" == config.quota
    assert config is config.replace()


def test_without_takes_back_what_one_source_said():
    """Values of that source are the defaults again, and say so; a source that said nothing changes nothing."""
    config = RetryConfig(max_attempts=5).replace_from({"quota": "elsewhere"}, quota=None)
    assert RetryConfig(max_attempts=5) == config.without("elsewhere")
    assert "default" == config.without("elsewhere").source("quota")
    assert config.explain() == config.without("nowhere").explain()


def test_equal_values_make_equal_configs():
    """The source of a value does not count in a comparison, nor in the hash."""
    assert RetryConfig() == RetryConfig(patience=5)
    assert hash(RetryConfig()) == hash(RetryConfig(patience=5))
    assert RetryConfig() != RetryConfig(max_attempts=4)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda config: pickle.loads(pickle.dumps(config))])
def test_copies_keep_values_and_sources(again):
    """A copied or unpickled config is equal and explains itself in the same words."""
    config = RetryConfig(max_attempts=5, allowed_methods={"get"})
    assert (config, config.explain()) == (again(config), again(config).explain())


def test_repr_shows_what_was_set_and_where():
    """The short form has mode, attempts, and each option that was set."""
    assert "RetryConfig(mode='standard' [default], max_attempts=5 [code], timeout=2 [code])" == repr(
        RetryConfig(max_attempts=5, timeout=2)
    )


def test_explain_shows_what_was_set():
    """The table has one line per option that was set; without any there is a sentence."""
    assert "every option has its default" == RetryConfig().explain(all=False)
    assert ["option", "timeout"] == [line.split()[0] for line in RetryConfig(timeout=3).explain(all=False).splitlines()]


NO_FILE = {"AWS_CONFIG_FILE": os.devnull}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: RetryConfig(), "default"),
        (lambda: RetryConfig(quota=500), "code"),
        (lambda: RetryConfig(retry_spec="2.1"), "from retry_spec 2.1"),
        (lambda: RetryAdapter(max_retries=Retry(5)).retry_config, "default"),
        (lambda: RetryAdapter(max_retries=5).retry_config, "default"),
        (
            lambda: resolve(
                RetryConfig(aws_config=True), {"AWS_RETRY_MODE": "adaptive", "AWS_CONFIG_FILE": os.devnull}
            ),
            "environment variable AWS_RETRY_MODE",
        ),
    ],
)
def test_the_quota_has_the_source_that_asks_for_it(make, expected):
    """The published bucket comes from whatever option asks for it, and is no default."""
    assert expected == make().source("quota")


def test_explain_of_all_is_a_table_of_everything():
    """The table has one line per option: name, effective value, source."""
    lines = RetryConfig(retry_spec="2.0", allowed_methods=()).explain().splitlines()
    assert ["option", *OPTIONS] == [line.split()[0] for line in lines]
    rows = {line.split()[0]: line.split(None, 1)[1] for line in lines}
    assert ["1.0", "from retry_spec 2.0"] == [part.strip() for part in rows["initial_backoff"].split("  ") if part]
    assert rows["allowed_methods"].startswith("(none)")
    assert "408, 425, 429, 500, 502, 503, 504" in rows["retry_status_codes"]


@pytest.mark.parametrize(
    ("value", "plain"),
    [(None, None), (3, 3), ("a", "a"), (frozenset({2, 1}), [1, 2]), ((), []), ((3, 5), "(3, 5)"), (True, True)],
)
def test_a_setting_has_a_form_for_json(value, plain):
    """Values of JSON stay; sets are sorted lists; anything else is its text."""
    assert plain == Setting("x", value, "code").plain
