"""The figures of the design page: what is counted, and what is left out."""

from __future__ import annotations

import pytest

from benchmarks import figures

pytestmark = [pytest.mark.once, pytest.mark.real_time, pytest.mark.untraced]


def test_the_ways_go_through_the_loop_and_the_line() -> None:
    """One retry and the wait of eight threads pass the files that the design page says to read."""
    retry, walks = figures.Walk(), [figures.Walk() for _ in range(figures.THREADS)]
    found = figures.one_retry(retry), figures.eight_that_wait(walks)
    names = {file.rpartition("/")[2] for file in figures.files_of([retry, *walks])}
    assert {
        "loop.py",
        "call.py",
        "strategy.py",
        "attempt.py",
        "retry_budget.py",
        "wait_queue.py",
        "waiting.py",
    } <= names
    assert "waiting.py" in {file.rpartition("/")[2] for file in figures.files_of(walks)}
    assert all(0 < each["files"] <= each["moves"] < each["calls"] for each in found)


def test_features_are_those_of_the_table() -> None:
    """The modules that the design page lists, with all of a folder's, are no part of what is left."""
    names = {str(file.relative_to(figures.PACKAGE)) for file in figures.features()}
    assert {"features/redis.py", "features/resume/body.py", "smithy/buckets.py", "cli/__init__.py"} <= names
    assert not any(name.startswith(("core/", "wire/", "config/")) for name in names)
    sizes = figures.sizes()
    assert sizes["without features, lines"] < sizes["package, lines"]
