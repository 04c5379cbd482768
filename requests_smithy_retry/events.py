"""The events that listeners get (contract 12)."""

from .observing.events import (
    AfterAttempt,
    BeforeAttempt,
    BodyProgress,
    GaveUp,
    ObservedOperation,
    RetryListener,
    RetryScheduled,
    Succeeded,
    Throttled,
    WaitBegan,
)

__all__ = [
    "AfterAttempt",
    "BeforeAttempt",
    "BodyProgress",
    "GaveUp",
    "ObservedOperation",
    "RetryListener",
    "RetryScheduled",
    "Succeeded",
    "Throttled",
    "WaitBegan",
]
