"""What a request costs: each row of the table is measured."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks import overhead

pytestmark = [pytest.mark.once, pytest.mark.real_time, pytest.mark.untraced]


def test_every_row_is_measured(tmp_path, monkeypatch):
    """A quick run has a figure of each row, but those of packages that are not installed, and of threads and memory.

    A session takes at most twice the memory of a plain one.
    """
    file = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["overhead", "--quick", "--json", str(file)])
    assert 0 == overhead.main()
    found = json.loads(file.read_text())
    assert [name for name in overhead.ROWS if "ours" in name] == [name for name in found["ratios"] if "ours" in name]
    assert all(each["cpu"]["median"] > 0 for each in found["ratios"].values())
    assert all(each["wall"]["median"] > 0 for each in found["threads"]["ratios"].values())
    assert 0 < found["memory"]["plain"] < found["memory"]["ours"] < 2 * found["memory"]["plain"]
