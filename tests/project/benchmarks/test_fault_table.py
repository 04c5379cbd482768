"""The fault table: how a cell is judged."""

from __future__ import annotations

import pytest

from benchmarks import fault_table
from benchmarks.faults import BODY, ERROR, INTACT, TWICE, UPLOAD, WRONG, Fault

pytestmark = pytest.mark.once

GET, PUT, POST = Fault(INTACT), Fault(INTACT, method="PUT", upload="file"), Fault(ERROR, method="POST", upload="bytes")


@pytest.mark.parametrize(
    ("fault", "told", "accepted", "outcome"),
    [
        (GET, (200, BODY), [b""], INTACT),
        (GET, (200, BODY[:-1]), [b""], WRONG),
        (GET, (503, b""), [], ERROR),
        (GET, None, [b""], ERROR),
        (PUT, (200, b""), [UPLOAD], INTACT),
        (PUT, (200, b""), [UPLOAD, UPLOAD], INTACT),
        (PUT, (200, b""), [b""], WRONG),
        (PUT, None, [b""], WRONG),
        (POST, (200, BODY), [UPLOAD], INTACT),
        (POST, (200, BODY), [UPLOAD, UPLOAD], TWICE),
        (POST, (200, BODY), [UPLOAD, b""], WRONG),
        (POST, None, [UPLOAD, UPLOAD], TWICE),
        (POST, None, [UPLOAD], ERROR),
    ],
)
def test_a_cell_is_judged_from_what_both_ends_say(fault, told, accepted, outcome):
    """A harm that only the server saw is one all the same."""
    assert outcome == fault_table.judge(fault, told, accepted)
