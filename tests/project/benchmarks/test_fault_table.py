"""The fault table: how a cell is judged, and cells with real servers."""

from __future__ import annotations

import pytest

from benchmarks import fault_table
from benchmarks.fault_clients import CLIENTS
from benchmarks.faults import BODY, ERROR, FAULTS, HANG, INTACT, TWICE, UPLOAD, WRONG, Fault
from requests_smithy_retry.testing import Drip, Reply

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


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("fault", "client", "outcome"),
    [
        ("503 once", "requests", ERROR),
        ("503 once", "ours", INTACT),
        ("gzip body cut, length agrees", "urllib3", WRONG),
        ("gzip body cut, length agrees", "ours", INTACT),
        ("PUT of a generator, 503 once", "urllib3", WRONG),
        ("PUT of a generator, 503 once", "ours", ERROR),
        ("PUT of a file, 503 once", "ours", INTACT),
        ("POST applied, then a reset", "urllib3, any method", TWICE),
        ("POST applied, then a reset", "ours", ERROR),
        ("503 for ever, `Retry-After: 86400`", "ours", ERROR),
        ("idle connection closed", "requests", INTACT),
        ("redirect, then 503 once", "ours", INTACT),
    ],
)
def test_a_cell_with_a_real_server(fault, client, outcome):
    """The rows that the documentation speaks of."""
    assert outcome == fault_table.cell(FAULTS[fault], CLIENTS[client])[0]


@pytest.mark.real_time
def test_who_does_not_come_back_in_time_hangs():
    """A client that exceeds the bound counts as hanging and is left behind; the end of its server ends it."""
    drip = Fault(INTACT, (Drip("body", 0.05, Reply(body=BODY)),))
    assert (HANG, "") == fault_table.cell(drip, CLIENTS["requests"], bound=0.3)[:2]
