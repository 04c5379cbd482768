"""The contract page: every reference to one of its sections leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "contract.md"
HEADING = re.compile(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", re.MULTILINE)
REFERENCE = re.compile(r"contract (\d+(?:\.\d+)?(?:(?:, | and | to )\d+(?:\.\d+)?)*)")

SECTIONS = set(HEADING.findall(PAGE.read_text()))
FILES = [
    path
    for folder in ("requests_smithy_retry", "tests", "benchmarks", "docs", ".")
    for path in sorted((ROOT / folder).glob("*" if folder == "." else "**/*"))
    if path.suffix in (".py", ".md") and path.name != "contract.md"
]


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in FILES])
def test_a_reference_to_the_contract_leads_to_a_section(path):
    """Each "contract N.N" in code, tests and docs names a heading of the page."""
    cited = {number for found in REFERENCE.findall(path.read_text()) for number in re.findall(r"\d+(?:\.\d+)?", found)}
    assert set() == cited - SECTIONS


def test_no_file_refers_to_an_issue():
    """Texts that are not in the repository are not referred to."""
    issue = re.compile(r"\bissue \d")
    assert [] == [str(path) for path in FILES if issue.search(path.read_text()) and path != Path(__file__)]
