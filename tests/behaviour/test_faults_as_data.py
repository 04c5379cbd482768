"""The table of faults for clients in any language, `tests/data/faults.json`, met by this one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from requests_smithy_retry import mount
from requests_smithy_retry.testing import RetryClock
from tests.faults.as_data import FAULTS, Served

pytestmark = [pytest.mark.real_time, pytest.mark.once, pytest.mark.untraced]
WHOLE = "abcdefghij"
ROUNDING = 0.01


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Served() as server:
        yield server


def end_of(session: requests.Session, url: str, row: dict[str, Any]) -> str:
    """How it ended, in the words of the table."""
    body = b"x" * 2_000_000 if row["method"] in ("PUT", "POST") else None
    try:
        answer = session.request(row["method"], url, data=body, timeout=0.5, stream=row.get("stream", False))
        text = answer.text
    except requests.RequestException:
        return "error"
    return f"status {answer.status_code}" if answer.status_code >= 400 else "whole" if text == WHOLE else text


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[row["name"] for row in FAULTS])
def test_a_fault_ends_as_the_table_wants(served: Served, number: int) -> None:
    """So many requests, that end, and no retry earlier than the server asked for."""
    row, clock = FAULTS[number], RetryClock()
    wanted, path = row["wanted"], f"/{number}/once"
    with mount(requests.Session(), clock=clock) as session:
        session.trust_env = False
        end = end_of(session, served.url + path, row)
    least, most = wanted["requests"]
    assert (wanted["end"], True) == (end, least <= len(served.seen[path]) <= most), served.seen[path]
    assert sum(clock.sleeps) >= wanted.get("apart", 0) - ROUNDING
