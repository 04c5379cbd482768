"""The table of SDKs by what vendors document: its data, and its verdicts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import requests

pytest.importorskip("trustme")
if sys.version_info < (3, 11):
    pytest.importorskip("tomli")

from benchmarks.sdks import __main__ as sdks
from benchmarks.sdks.rows import rows
from benchmarks.sdks.service import Service
from tests.faults import FaultServer

pytestmark = [pytest.mark.once, pytest.mark.real_time]


def test_each_client_is_on_the_page_and_each_call_has_a_source():
    """A row without the vendor's document would be what somebody thought up."""
    page = set(json.loads((Path(sdks.RESULT).parent / "sdks.json").read_text())["result"])
    assert set(rows()) <= page
    for name, row in rows().items():
        assert row["host"], name
        compile(row["make"], name, "exec")
        compile(row["line"], name, "exec")
        for call in row["call"]:
            assert call["source"].startswith("https://"), name
            assert call["does"], name
            compile(call["do"], name, "exec")
            assert all(len(each["request"].split()) == 2 for each in call["answer"]), name


def test_what_is_applied_twice_is_said():
    """Whatever the client then says."""
    well = {"told": 1, "ended": "right", "trace": ["POST"], "safe": [False], "applied": {"POST /": 1}}
    assert "twice" == sdks.verdict({**well, "applied": {"POST /": 2}}, well, "reset", 0)
    assert "wrong" == sdks.verdict({**well, "told": 2}, well, "reset", 0)
    assert "careful" == sdks.verdict({**well, "ended": "error"}, well, "reset", 0)
    assert "missed" == sdks.verdict({**well, "ended": "error"}, {**well, "safe": [True]}, "reset", 0)


def test_what_a_vendor_answers_otherwise_the_second_time_is_not_safe_to_repeat():
    """A repeated cancel of an order is refused, whatever RFC 9110 says of DELETE: an error there is no missed retry."""
    service = Service(rows()["python-binance"])
    cancel = next(each for each in range(3) if rows()["python-binance"]["call"][each]["does"] == "cancel")
    service.begin(cancel)
    with FaultServer(service) as server:
        statuses = [requests.delete(f"{server.url}/api/v3/order", timeout=60).status_code for _ in range(2)]
    assert [200, 400] == statuses
    assert [False, False] == service.safe
