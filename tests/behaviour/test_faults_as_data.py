"""The table of faults for clients in any language, `tests/data/faults.json`, met by this one."""

from __future__ import annotations

import io
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


class Changing(io.BytesIO):
    """A file that has another length once it was read and is gone back in: somebody has written on it."""

    def __init__(self, first: int, then: int) -> None:
        super().__init__(b"x" * first)
        self._then, self._was_read = then, False

    def read(self, size: int | None = -1, /) -> bytes:
        self._was_read = True
        return super().read(size)

    def seek(self, position: int, whence: int = 0, /) -> int:
        if self._was_read:
            self._was_read = False
            super().seek(0)
            self.truncate()
            self.write(b"x" * self._then)
        return super().seek(position, whence)


def end_of(session: requests.Session, url: str, row: dict[str, Any]) -> str:
    """How it ended, in the words of the table."""
    body: Any = b"x" * 2_000_000 if row["method"] in ("PUT", "POST") else None
    body = Changing(*row["upload"]) if "upload" in row else body
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
