"""The annotations of what is public can be evaluated at run time, as pydantic, Sphinx and SDKs do."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import requests_smithy_retry
from requests_smithy_retry import RetryConfig, RetryOptions

PACKAGE = requests_smithy_retry.__name__
MODULES = ("", ".testing", ".smithy", ".otel", ".prometheus", ".policy")


def public() -> Iterator[tuple[str, Any]]:
    """Return each public name with what it names: all of a module without ``__all__`` that is its own."""
    for module in MODULES:
        try:
            home = import_module(PACKAGE + module)
        except ImportError:  # an extra is not installed
            continue
        for name in getattr(home, "__all__", vars(home)):
            thing = getattr(home, name)
            if callable(thing) and not name.startswith("_") and getattr(thing, "__module__", "").startswith(PACKAGE):
                yield f"{home.__name__}.{name}", thing


def parts_of(thing: Any) -> Iterator[Any]:
    """Return a function, or a class with those it is made of, and their methods; nothing of others."""
    if not inspect.isclass(thing):
        yield inspect.unwrap(thing)
        return
    for kind in thing.__mro__:
        if kind.__module__.startswith(PACKAGE):
            yield kind
            for value in vars(kind).values():
                function = getattr(value, "fget", None) or getattr(value, "__func__", value)
                if inspect.isfunction(function) and function.__module__.startswith(PACKAGE):
                    yield function


PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_annotations_can_be_evaluated(name: str) -> None:
    """Each name in an annotation is known to the module at run time, too."""
    for part in parts_of(PUBLIC[name]):
        inspect.get_annotations(part, eval_str=True)


def test_hints_and_signatures() -> None:
    """The usual functions give an option's type, and that of an argument."""
    assert typing.get_type_hints(RetryOptions)["patience"] is float
    assert typing.get_type_hints(RetryConfig)["max_attempts"] == int | None
    signature = inspect.signature(requests_smithy_retry.mount, eval_str=True)
    assert signature.parameters["config"].annotation == RetryConfig | None


def test_they_name_the_options_of_mount() -> None:
    """The keywords of ``mount`` are those of ``RetryOptions``, before Python 3.11 without ``Unpack`` around it."""
    found = typing.get_type_hints(requests_smithy_retry.mount)["options"]
    assert RetryOptions in (found, *typing.get_args(found))
