"""The contract page: every reference to one of its sections leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once
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


def test_a_reference_to_the_contract_leads_to_a_section():
    """Each "contract N.N" in code, tests and docs names a heading of the page."""
    cited = {
        (str(path.relative_to(ROOT)), number)
        for path in FILES
        for found in REFERENCE.findall(path.read_text())
        for number in re.findall(r"\d+(?:\.\d+)?", found)
    }
    assert set() == {(path, number) for path, number in cited if number not in SECTIONS}


def test_the_contract_has_at_most_40_sections():
    """A new one takes the place of another; a chapter without sections counts as one."""
    numbers = HEADING.findall(PAGE.read_text())
    chapters = [number for number in numbers if "." not in number]
    bare = [number for number in chapters if not any(other.startswith(f"{number}.") for other in numbers)]
    assert len(numbers) - len(chapters) + len(bare) <= 40


def test_no_file_refers_to_an_issue():
    """Texts that are not in the repository are not referred to."""
    issue = re.compile(r"\bissue \d")
    assert [] == [str(path) for path in FILES if issue.search(path.read_text()) and path != Path(__file__)]
