"""The progress of one operation: what its attempts have come to so far. A value; it travels in a strategy's token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .line import Standing


@dataclass(frozen=True, slots=True)
class Progress:
    """What decides about the next attempt, besides the outcome of the last one.

    :param standing: as its quota counts it.
    :param retries: attempts so far without the first, since it last made progress.
    :param free: attempts that count against no cap, because a body came further by then.
    :param backoff: the computed delay of the last retry, for decorrelated jitter; None before the first.
    :param failures: by the kinds of a urllib3 ``Retry``; counted for a translated one alone.
    """

    standing: Standing
    retries: int = 0
    free: int = 0
    backoff: float | None = None
    failures: tuple[Any, ...] = ()
