"""The generated page of every outcome's verdict is up to date, and the same with any supported version."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

from generators import classification_page as page

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "classification.md"


def test_the_page_is_up_to_date() -> None:
    """``python docs/generate.py`` would change nothing."""
    assert page.build() == PAGE.read_text(encoding="utf-8")
