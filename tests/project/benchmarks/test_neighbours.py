"""Other people's suites: how two runs are compared, and the reasons that are written down."""

from __future__ import annotations

import json

import pytest

from benchmarks.neighbours.__main__ import DIFFERENCES, SUITES, differing, parsed, unexpected

pytestmark = pytest.mark.once

REPORT = """<testsuites><testsuite>
<testcase classname="a" name="one"/>
<testcase classname="a" name="two"><failure message="assert 1 == 2&#10;more">trace</failure></testcase>
<testcase classname="a" name="three"><skipped message="no network"/></testcase>
<testcase classname="a" name="four"><error message="boom"/></testcase>
</testsuite></testsuites>"""


def test_a_report_is_read():
    """A failure keeps the first line of its message."""
    expected = {
        "a::one": "passed",
        "a::two": "failed: assert 1 == 2",
        "a::three": "skipped",
        "a::four": "failed: boom",
    }
    assert expected == parsed(REPORT)


def test_tests_that_end_otherwise_differ():
    """Another message of a failure is no difference; a test that is missing is one."""
    plain = {"a": "passed", "b": "failed: x", "c": "passed", "d": "passed"}
    ours = {"a": "passed", "b": "failed: y", "c": "failed: z"}
    assert ["c", "d"] == differing(plain, ours)


@pytest.mark.parametrize(
    ("found", "known", "lines"),
    [
        (["a"], {"a": "counts calls"}, []),
        (["a"], {}, ["differs, without a reason: a"]),
        ([], {"a": "counts calls"}, ["differs no more: a"]),
        (["a"], {"a": "unexplained: failed"}, ["unexplained: a"]),
    ],
)
def test_each_difference_needs_its_reason(found, known, lines):
    """A reason without a difference is told, too."""
    assert lines == unexpected(found, known)


def test_every_difference_that_is_written_down_has_a_reason():
    """They belong to suites that are run."""
    known = json.loads(DIFFERENCES.read_text(encoding="utf-8"))
    assert set() == known.keys() - SUITES.keys()
    assert [] == [test for tests in known.values() for test, why in tests.items() if why.startswith("unexplained")]
