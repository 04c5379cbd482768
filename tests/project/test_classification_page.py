"""The generated page of every outcome's verdict: up to date, complete, and the same with any supported version."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import requests.exceptions
import urllib3.exceptions

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

from generators import classification_page as page

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "classification.md"


def test_the_page_is_up_to_date() -> None:
    """``python docs/generate.py`` would change nothing, but for classes that are not there."""
    there = {f"`{name}`" for name, _ in page.exception_classes()}
    head, heading, classes = PAGE.read_text(encoding="utf-8").partition("## Every exception class by itself")
    for name in set(re.findall(r"`[\w.]+`", classes)) - there:
        classes = classes.replace(f"{name}, ", "").replace(f", {name}", "")
    assert page.build() == head + heading + classes


@pytest.mark.parametrize("module", [requests.exceptions, urllib3.exceptions])
def test_every_exception_class_is_on_it(module: Any) -> None:
    """The page has the classes of this environment's versions; an alias of a class counts once."""
    text = PAGE.read_text(encoding="utf-8")
    for cls in vars(module).values():
        if inspect.isclass(cls) and issubclass(cls, Exception) and cls.__module__ == module.__name__:
            assert issubclass(cls, Warning) or f"`{module.__name__}.{cls.__name__}`" in text


def test_a_class_without_a_sample_is_an_error() -> None:
    """A class without a sample would be missing from the page in silence, so it is an error."""

    class Odd(Exception):
        def __init__(self, *, only: int) -> None:
            super().__init__(only)

    with pytest.raises(TypeError, match="no sample of"):
        page.sample(Odd)
