"""The table of features on the design page is that of the code, so a feature without a row cannot land."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import requests_smithy_retry
from requests_smithy_retry.config.retry_config import OPTIONS
from requests_smithy_retry.core.port import Feature
from requests_smithy_retry.features import table

pytestmark = pytest.mark.once

PACKAGE = Path(requests_smithy_retry.__file__).parent
PAGE = PACKAGE.parent / "docs" / "explanation" / "design.md"
OF_THE_TABLE = {"__init__", "table"}
"""What is no feature in that folder."""

SEAMS = [name for name, value in vars(Feature).items() if not name.startswith("_") and callable(value)]
"""What a feature may override, in the order of the port."""

SHARED = {"smithy/__init__", "smithy/error_code"}
"""What several of the papers' features use."""


class Row(NamedTuple):
    """A row of the page; ``places`` are modules or folders of the package."""

    places: list[str]
    lines: int
    options: list[str]
    seams: list[str]

    def modules(self) -> list[Path]:
        found = [PACKAGE / f"{place}.py" for place in self.places if (PACKAGE / f"{place}.py").exists()]
        return [*found, *(path for place in self.places for path in (PACKAGE / place).rglob("*.py"))]


def rows() -> list[Row]:
    text = PAGE.read_text(encoding="utf-8").partition("\n## The features\n")[2].partition("\n## ")[0]
    cells = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    names = [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in cells]
    return [
        Row(name[0], int(cell[1].replace(",", "")), [word for word in name[2] if word in OPTIONS], name[3])
        for cell, name in zip(cells, names, strict=True)
    ]


each_row = pytest.mark.parametrize("row", rows(), ids=lambda row: row.places[0])


def seams_of(row: Row) -> set[str]:
    """The seams that the classes in a row's modules override."""
    found: set[str] = set()
    for path in row.modules():
        name = ".".join(("requests_smithy_retry", *path.relative_to(PACKAGE).with_suffix("").parts))
        if "(Feature)" in path.read_text(encoding="utf-8"):
            kinds = [item for item in vars(importlib.import_module(name)).values() if inspect.isclass(item)]
            own = [kind for kind in kinds if issubclass(kind, Feature) and kind is not Feature]
            found.update(seam for kind in own for seam in SEAMS if seam in vars(kind))
    return found


@each_row
def test_a_row_names_the_seams_that_its_feature_overrides(row: Row) -> None:
    """In the order of the port."""
    assert [seam for seam in SEAMS if seam in seams_of(row)] == row.seams


@each_row
def test_a_row_tells_how_long_its_feature_is(row: Row) -> None:
    """By a tenth, or fifteen lines: a feature that grows has to be looked at here."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in row.modules())
    assert abs(lines - row.lines) <= max(15, 0.1 * row.lines), lines


def test_every_feature_of_the_code_has_a_row() -> None:
    """Those that the table imports, and all modules of the folder; nothing is in two rows."""
    imported = re.findall(r"from \.(\.smithy\.|)(\w+) import", inspect.getsource(table))
    places = {f"{'smithy' if papers else 'features'}/{name}" for papers, name in imported}
    there = {f"features/{path.stem}" for path in (PACKAGE / "features").iterdir() if path.stem not in OF_THE_TABLE}
    there.discard("features/__pycache__")
    written = [place for row in rows() for place in row.places]
    assert sorted(set(written)) == sorted(written)
    assert set() == (places | there) - set(written)
    papers = {f"smithy/{path.stem}" for path in (PACKAGE / "smithy").glob("*.py")} - SHARED
    assert papers == {place for place in written if place.startswith("smithy/")}
