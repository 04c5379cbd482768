from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "share-a-quota.md"


def test_every_failure_mode_names_a_test_that_is_there() -> None:
    """The table of the page is as good as the tests that it points to."""
    named = set(re.findall(r"`(test_\w+|Test\w+)`", PAGE.read_text(encoding="utf-8")))
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in (PAGE.parents[2] / "tests" / "unit" / "quotas").glob("test_*.py")
    )
    there = set(re.findall(r"(?:def|class) (\w+)", sources))
    assert len(named) > 20
    assert named - there == set()


def test_every_setting_is_on_the_page() -> None:
    """The table of settings is whole."""
    from requests_smithy_retry.quotas.settings import RedisSettings, names_of

    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert names_of(RedisSettings) - rows == set()
