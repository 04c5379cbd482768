"""The places of an option and of a feature: CONTRIBUTING lists them all, and each option is in each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from requests_smithy_retry import RetryOptions
from requests_smithy_retry.config.retry_config import OPTIONS
from requests_smithy_retry.config.retry_options import OPERATION_OPTIONS, OperationKeywords
from requests_smithy_retry.config.sources import PREFIX
from tests.behaviour import test_contradictions, test_foreign, test_options, test_retry_options
from tests.unit.config import test_worst_case

from .test_features import Row, rows
from .test_generated_docs import tables

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
HELP = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def text_of(place: str) -> str:
    return (ROOT / place).read_text(encoding="utf-8")


def works(function: Callable[[str], Any], name: str) -> bool:
    try:
        function(name)
    except Exception:  # whatever it finds wrong
        return False
    return True


OPTION_PLACES: dict[str, Callable[[str], bool]] = {
    "requests_smithy_retry/config/retry_config.py": lambda name: name in RetryOptions.__annotations__,
    "requests_smithy_retry/config/sources.py": lambda name: (
        OPTIONS[name].not_from_environment or works(tables.example_of, name)
    ),
    "docs/reference/options.md": lambda name: f"\n`{name}=" in text_of("docs/reference/options.md"),
    "docs/reference/environment.md": lambda name: (
        OPTIONS[name].not_from_environment or f"\n{PREFIX}{name.upper()}=" in text_of("docs/reference/environment.md")
    ),
    "tests/behaviour/test_options.py": lambda name: name in test_options.DEFAULTS,
    "tests/behaviour/test_contradictions.py": lambda name: works(
        lambda name: [OPTIONS[name].parse(value) for value in test_contradictions.samples(name)], name
    ),
    "tests/behaviour/test_foreign.py": lambda name: OPTIONS[name].of_adapter == (name in test_foreign.OF_THE_ADAPTER),
    "tests/unit/config/test_worst_case.py": lambda name: (
        name in {*test_worst_case.MATTERING, *test_worst_case.NO_MATTER}
    ),
}
"""The files to which a new option must be added, and whether a name is there."""

BLOCK_PLACES: dict[str, Callable[[str], bool]] = {
    "requests_smithy_retry/config/retry_options.py": lambda name: name in OperationKeywords.__annotations__,
    "docs/reference/options.md": lambda name: f"`{name}`" in text_of("docs/reference/options.md"),
    "tests/behaviour/test_retry_options.py": lambda name: name in test_retry_options.TAKEN.split(", "),
}
"""The same for an option of a block."""


def section(heading: str) -> str:
    return HELP.partition(f"\n### {heading}\n")[2].partition("\n##")[0]


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_in_every_place(name: str) -> None:
    """What this prints is where a new option is missing."""
    assert "" == "\n".join(place for place, is_there in OPTION_PLACES.items() if not is_there(name))


@pytest.mark.parametrize("name", OPERATION_OPTIONS)
def test_an_option_of_a_block_is_in_every_place(name: str) -> None:
    """What this prints is where a new option of ``retry_options`` is missing."""
    assert "" == "\n".join(place for place, is_there in BLOCK_PLACES.items() if not is_there(name))


def test_contributing_names_every_place_of_an_option() -> None:
    """In its list."""
    listed = section("An option")
    assert [] == [place for place in (*OPTION_PLACES, *BLOCK_PLACES) if f"`{place}`" not in listed]


TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in ("requests_smithy_retry/**/*", "tests/**/*", "benchmarks/**/*", "docs/**/*", "*")
    for path in sorted(ROOT.glob(folder))
    if path.is_file() and path.suffix in (".py", ".md", ".toml", ".cfg", ".ini")
}
"""Every text of the repository that may name a feature."""
HISTORY = {"CHANGELOG.md"}
"""What goes on naming a feature that is gone."""


def naming(row: Row) -> set[str]:
    """Return the files that name a feature's modules, but its own."""
    own = {path.relative_to(ROOT).as_posix() for path in row.modules()}
    words = [re.escape(place).replace("/", "[./]") for place in row.places if "/" in place]
    found = re.compile(rf"(?<![\w/])\.*(?:requests_smithy_retry[./])?(?:{'|'.join(words)})(?!\w)")
    return {name for name, text in TEXTS.items() if name not in own | HISTORY and found.search(text)}


@pytest.mark.parametrize("row", [row for row in rows() if "/" in row.places[0]], ids=lambda row: row.places[0])
def test_contributing_names_every_place_of_a_feature(row: Row) -> None:
    """What this prints names a feature, and would be overlooked by who removes it."""
    listed = re.findall(r"`([\w/.]+)`", section("A feature"))
    assert "" == "\n".join(sorted(name for name in naming(row) if not name.startswith(tuple(listed))))


def test_what_contributing_lists_is_there() -> None:
    """Each file and folder of both lists."""
    listed = re.findall(r"`([\w.]+/[\w/.]*)`", section("An option") + section("A feature"))
    assert listed != []
    assert [] == [place for place in listed if not (ROOT / place).exists()]
