"""Events are frozen values with names (contract 12)."""

from __future__ import annotations

from typing import Any

import pytest

import requests_smithy_retry
from requests_smithy_retry import (
    AfterAttempt,
    BeforeAttempt,
    BodyProgress,
    GaveUp,
    RetryScheduled,
    Succeeded,
    Throttled,
)

FIELDS: dict[Any, tuple[str, ...]] = {
    BeforeAttempt: ("operation", "number"),
    AfterAttempt: ("operation", "number", "response", "error", "duration", "noted", "peer"),
    RetryScheduled: ("operation", "number", "delay", "delay_source", "record", "line_wait", "line_why"),
    Throttled: ("operation", "number", "record"),
    GaveUp: ("operation", "number", "history"),
    Succeeded: ("operation", "number", "history"),
    BodyProgress: ("operation", "received", "total", "resumes"),
}


@pytest.mark.parametrize("kind", FIELDS)
def test_an_event_cannot_be_changed(kind: Any) -> None:
    """Neither can a field be set nor another attribute added."""
    event = kind(*range(len(FIELDS[kind])))
    for name in (*FIELDS[kind], "other"):
        with pytest.raises(AttributeError):
            setattr(event, name, 1)


@pytest.mark.parametrize("kind", FIELDS)
def test_an_event_has_these_fields(kind: Any) -> None:
    """The operation comes first in all of them, and the attempt's number where there is one."""
    assert FIELDS[kind] == kind._fields


def test_every_event_is_in_the_table() -> None:
    """A new event is tested as the others are."""
    public = [getattr(requests_smithy_retry, name) for name in requests_smithy_retry.__all__]
    assert set(FIELDS) == {kind for kind in public if "operation" in getattr(kind, "_fields", ())}
