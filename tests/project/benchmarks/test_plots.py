"""The pictures are drawn from the results, where matplotlib is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import plots

pytestmark = pytest.mark.once


def test_every_picture_is_drawn_in_both_formats_and_twice_the_same(tmp_path):
    """The pictures of the committed results come in both formats, and are the same when drawn again."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        assert [name for name, _ in plots.PLOTS.values()] == plots.draw(pictures=folder)
    one, two = ({file.name: file.read_bytes() for file in folder.iterdir()} for folder in folders)
    assert one == two
    assert {f"{name}.{kind}" for name, _ in plots.PLOTS.values() for kind in ("png", "svg")} == set(one)


def test_a_picture_without_results_is_left_out(tmp_path):
    """Without results no picture is drawn, and the returned list is empty."""
    assert [] == plots.draw(tmp_path, tmp_path)
