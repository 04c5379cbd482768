"""The version and the changelog agree, and so does what the page for SDKs tells others to pin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import requests_smithy_retry

from .released import complaint, main

ROOT = Path(__file__).resolve().parents[2]
VERSION = requests_smithy_retry.__version__


def test_the_changelog_begins_with_the_version():
    """Whatever is not released yet is told under the version that it will have."""
    assert complaint((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), VERSION) is None


@pytest.mark.parametrize(
    ("heading", "version", "is_right"),
    [
        ("## 0.2.0 - 2026-12-01", "0.2.0", True),
        ("## 0.2.0.dev0 (unreleased)", "0.2.0.dev0", True),
        ("## 0.2.0 (unreleased)", "0.2.0", False),
        ("## 0.2.0.dev0 - 2026-12-01", "0.2.0.dev0", False),
        ("## 0.2.0", "0.2.0", False),
        ("## 0.2.00 - 2026-12-01", "0.2.0", False),
        ("## Unreleased", "0.2.0", False),
        ("", "0.2.0", False),
    ],
)
def test_a_release_needs_its_heading(heading, version, is_right):
    """It is the first one, and has a date if and only if the version is no development version."""
    text = f"# Changelog\n\n{heading}\n\n- It works.\n\n## 0.1.0 - 2026-11-22\n"
    found = complaint(text, version)
    assert is_right == (found is None)
    assert is_right or f"## {version} " in found


def test_a_wheel_that_the_changelog_does_not_tell_of_is_refused(tmp_path):
    """``tox -e release`` ends there, before anything is installed."""
    (tmp_path / "requests_smithy_retry-9.9.9-py3-none-any.whl").touch()
    with pytest.raises(SystemExit, match=r'needs "## 9\.9\.9 - YYYY-MM-DD"'):
        main(tmp_path)


def test_the_pin_for_libraries_admits_this_version_and_no_older_one():
    """0.1.0 has not the names that the page uses, and the next minor version may change them."""
    page = (ROOT / "docs/howto/ship-it-in-your-library.md").read_text(encoding="utf-8")
    pins = {Requirement(text).specifier for text in re.findall(r"requests-smithy-retry[<>=][^\s\"'`]+", page)}
    assert pins
    major, minor = VERSION.split(".")[:2]
    for pin in pins:
        admitted = [VERSION in pin, f"{major}.{minor}.9" in pin, "0.1.0" in pin, f"{major}.{int(minor) + 1}.0" in pin]
        assert [True, True, False, False] == admitted
