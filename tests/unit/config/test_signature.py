"""The constructor's signature names each option (contract 1)."""

from __future__ import annotations

import inspect

from requests.adapters import HTTPAdapter

from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.config.retry_config import OPTIONS


def test_the_signature_begins_as_that_of_the_plain_adapter() -> None:
    """HTTPAdapter's parameters come first, in its order; all that follow are keyword-only."""
    plain = list(inspect.signature(HTTPAdapter).parameters)
    ours = list(inspect.signature(RetryAdapter).parameters.values())
    assert plain == [parameter.name for parameter in ours[: len(plain)]]
    assert {inspect.Parameter.KEYWORD_ONLY} == {parameter.kind for parameter in ours[len(plain) : -1]}
    assert inspect.Parameter.VAR_KEYWORD is ours[-1].kind


def test_each_option_is_in_it_with_its_default() -> None:
    """The signature has each option with its default, so that ``help()`` and tools find them."""
    shown = inspect.signature(RetryAdapter).parameters
    assert {name: option.default for name, option in OPTIONS.items()} == {name: shown[name].default for name in OPTIONS}
    assert "float" == shown["max_backoff"].annotation


def test_a_call_by_it_is_a_call() -> None:
    """Arguments that were bound by the signature, defaults included, can be given to the constructor."""
    bound = inspect.signature(RetryAdapter).bind(max_attempts=2)
    bound.apply_defaults()
    assert 2 == RetryAdapter(*bound.args, **bound.kwargs).retry_config.max_attempts
