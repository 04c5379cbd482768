"""The table of options by itself; with the config that is made of it: test_config.py."""

from __future__ import annotations

import pytest

from requests_smithy_retry import RetryConfigError
from requests_smithy_retry.options import (
    ADAPTER_OPTIONS,
    CLASSIFIER_OPTIONS,
    OPTIONS,
    allowed_values,
    check_names,
    parse_option,
    unknown_option,
)


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_says_what_it_allows_and_refuses_the_rest(name: str) -> None:
    """In one phrase, which its error has too; its meaning is one line."""
    option = OPTIONS[name]
    assert option.name == name
    assert option.meaning
    assert "\n" not in option.meaning
    with pytest.raises(RetryConfigError, match=name) as caught:
        parse_option(name, object(), "code")
    assert allowed_values(name) in str(caught.value)


def test_sets_of_options_name_options() -> None:
    """What is the adapter's and what is the classifiers' is in the table, and no option is both."""
    assert OPTIONS.keys() >= ADAPTER_OPTIONS | CLASSIFIER_OPTIONS
    assert not ADAPTER_OPTIONS & CLASSIFIER_OPTIONS


def test_names_are_checked() -> None:
    """All of them; the options come back as they are."""
    options = {"max_attempts": 2, "jitter": "none"}
    assert check_names(options) is options
    with pytest.raises(TypeError, match="did you mean 'max_backoff'"):
        check_names({"jitter": "none", "max_backof": 3})


def test_far_from_any_name_all_are_listed() -> None:
    """There is no nearest one then."""
    assert all(name in unknown_option("qqqqq") for name in OPTIONS)
