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
"""For each area; what was found is made smaller within the same time."""


@pytest.mark.parametrize("area", AREAS)
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
