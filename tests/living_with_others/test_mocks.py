"""The example of docs/howto/ship-it-in-your-library.md with requests-mock, beneath the retries."""

from __future__ import annotations

import pytest

from requests_smithy_retry.testing import skipped_waits
from tests.living_with_others.test_journeys import all_blocks_of


def test_requests_mock_behind_the_adapter_sees_each_attempt():
    """The block of the page runs as printed, after those that make the client."""
    pytest.importorskip("requests_mock")
    blocks = all_blocks_of("ship-it-in-your-library.md")
    (mocked,) = [block for block in blocks if "requests_mock" in block]
    space: dict[str, object] = {"__name__": "docs"}
    with skipped_waits():
        for block in (*blocks[:6], mocked):
            exec(compile(block, "ship-it-in-your-library.md", "exec"), space)
