"""Booking first-try successes by what is remembered of their origin (contract 6.2)."""

from __future__ import annotations

from typing import Any

from .support import prepare, scripted, send


def test_a_remembered_bucket_that_has_room_is_told_at_once() -> None:
    """By a second first-try success at the same origin, after something was spent there."""
    adapter: Any = scripted(200, 200, quota="payoff")
    send(adapter)
    bucket = adapter.strategy.bucket(adapter.scope_of(prepare()))
    bucket.acquire(1)
    spent = bucket.available
    send(adapter)
    assert bucket.available >= spent
