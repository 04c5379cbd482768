"""The names of the top level: those that are listed, those that have moved, and no others (contract 14)."""

from __future__ import annotations

import importlib

import pytest

import requests_smithy_retry
from requests_smithy_retry import classifiers


@pytest.mark.parametrize("home", requests_smithy_retry._MOVED)
def test_a_name_that_has_moved_is_still_found(home: str) -> None:
    """Programs for older releases import it from the top level."""
    module = importlib.import_module(f"requests_smithy_retry.{home}")
    for name in module.__all__:
        assert getattr(requests_smithy_retry, name) is getattr(module, name)


@pytest.mark.parametrize("module", [requests_smithy_retry, classifiers])
def test_another_name_is_an_attribute_error(module: object) -> None:
    """It names the module and the name."""
    with pytest.raises(AttributeError, match=r"module 'requests_smithy_retry.*' has no attribute 'Nothing'"):
        module.Nothing  # type: ignore[attr-defined]  # noqa: B018 - importing it is the test
