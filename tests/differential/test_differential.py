"""A short run of the fuzzer, always the same; `tox -e fuzz` goes on for an hour."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .__main__ import SEED, fuzz
from .programs import AREAS, program
from .rules import RULES

pytestmark = [pytest.mark.real_time, pytest.mark.once, pytest.mark.untraced]
SECONDS, PROGRAMS = 60.0 / len(AREAS), 150
STANDING = {
    "reading": "the error of a body in chunks with an ETag lost how many bytes were read",
    "sessions": "the body of response.request is not the program's own",
    "uploads": "the body of response.request is not the program's own",
    "pools": "a body that may go on gives its connection back before it is read",
    "faults": "the body of response.request is not the program's own; length_remaining after a cut",
}
"""Defects that are not mended yet; a mended area loses its line."""


def areas() -> list[object]:
    """List the areas, those with a defect as such."""
    known = {area: pytest.mark.xfail(reason=why, strict=False) for area, why in STANDING.items()}
    return [pytest.param(area, marks=[known[area]] if area in known else []) for area in AREAS]


@pytest.mark.parametrize("area", areas())
def test_a_program_sees_no_difference_without_a_name(area: str) -> None:
    """Of one area, each program sees with ours what it sees with plain requests, but for what has a rule."""
    said: list[str] = []
    failed = fuzz([area], SEED, SECONDS, range(PROGRAMS), said.append)
    assert [] == list(failed.values()), "\n".join(said)


def test_a_number_makes_the_same_program() -> None:
    """A seed and a number are a program, in each run."""
    assert [program(area, 5, 7) for area in AREAS] == [program(area, 5, 7) for area in AREAS]


def test_each_rule_has_a_name_and_a_section_of_the_contract() -> None:
    """What differs on purpose is counted by name, and promised."""
    page = Path(__file__).parents[2] / "docs" / "explanation" / "contract.md"
    sections = set(re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(RULES) == len({rule.name for rule in RULES})
    assert set() == {rule.section for rule in RULES} - sections
