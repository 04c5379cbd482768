"""The comparison of downloads: no bytes of two versions are put together, and nothing is left open."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from requests_smithy_retry.sending.resuming import Piece, Resumable

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
clients: Any = importlib.import_module("download_clients")
world: Any = importlib.import_module("download_world")
downloads: Any = importlib.import_module("downloads")

# With urllib3 before 2, plain requests takes a cut body for a whole one.
pytestmark = pytest.mark.once


@pytest.mark.parametrize("start", range(0, 600, 100))
def test_random_downloads_have_right_bytes_or_an_error(start: int) -> None:
    """Of many random downloads none has wrong bytes, none leaves a connection open, and most are right."""
    found = world.many(range(start, start + 100))
    assert {world.RIGHT, world.FAILED} >= found.keys()
    assert found[world.RIGHT] > found[world.FAILED]


def test_the_worlds_would_notice_a_splice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that takes any 206 for the rest ends with wrong bytes in some of these worlds."""
    monkeypatch.setattr(
        Resumable, "fit", lambda self, response, received: Piece(self.end or 1 << 40, self.end or 1 << 40)
    )
    assert world.many(range(300))[world.WRONG] > 0


def test_a_world_repeats() -> None:
    """The same seed gives the same download."""
    first, again = world.run(7), world.run(7)
    assert first[0] == again[0]
    assert first[1].requests == again[1].requests
    assert world.World(7).versions[0].coded == world.World(7).versions[0].coded


def test_the_worlds_differ() -> None:
    """Each way of reading, each framing and each validator is drawn."""
    worlds = [world.World(seed) for seed in range(200)]
    assert set(world.WAYS) == {each.way for each in worlds}
    assert {"length", "chunked", "close"} == {each.framing for each in worlds}
    assert 5 == len(Counter(each.validator for each in worlds))


def test_a_link_that_is_cut_is_no_trouble_to_us() -> None:
    """A file over a link that is cut every 10 MiB arrives, and each byte is sent once."""
    found = downloads.cut("ours", 21 * downloads.MIB)
    assert (world.RIGHT, 1.0) == (found["outcome"], found["sent"])


def test_a_link_that_is_cut_ends_a_plain_download() -> None:
    """Plain requests notices the cut, and that is the end."""
    assert "ChunkedEncodingError" == downloads.cut("requests", 11 * downloads.MIB)["outcome"]


def test_each_client_says_what_it_is() -> None:
    """Each has a line for the page."""
    assert all((make.__doc__ or "").strip() for make in clients.CLIENTS.values())
