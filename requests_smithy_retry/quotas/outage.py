"""Outages: when to ask a shared bucket again, what is logged meanwhile, and the line on a service that is back."""

from __future__ import annotations

import logging

from ..urls import display_scope
from .settings import SharedQuotaSettings

logger: logging.Logger = logging.getLogger("requests_smithy_retry")

FAILURES_IN_A_ROW = 3
"""The number of failures without an answer between them that make an outage; fewer cost the calls that met them."""
SLICES = 20
"""The number of parts into which a wait of one budget is divided."""


class Outage:
    """The state of one shared place. The caller tells the time; races of threads cost at most one more question."""

    def __init__(self, place: str, settings: SharedQuotaSettings) -> None:
        self.place = place
        self.settings = settings
        self.fallen_open: bool = False
        self.failures: int = 0
        """Failures of the shared place, since the start."""
        self._in_a_row = 0
        self._ask_at = 0.0
        self._log_at = float("-inf")

    def may_ask(self, now: float) -> bool:
        """Return True if the shared bucket is to be asked now. While it is out, one caller at a time may."""
        if self.fallen_open:
            if now < self._ask_at:
                return False
            self._ask_at = now + self.settings.retry_interval
        return True

    def note_failure(self, now: float, why: str) -> None:
        """Take note that the place did not answer; after several failures in a row, fall open.

        :param why: in a word, without secrets.
        """
        self.failures += 1
        self._in_a_row += 1
        if self._in_a_row >= FAILURES_IN_A_ROW:
            self.fallen_open = True
            self._ask_at = now + self.settings.retry_interval
        if now >= self._log_at:
            self._log_at = now + self.settings.log_interval
            logger.warning(
                "the shared retry quota at %s does not answer (%s, failure %d): a bucket of this process stands in",
                self.place,
                why,
                self.failures,
            )

    def note_answer(self) -> None:
        """Take note that the place answered, and end the outage."""
        self._in_a_row = 0
        if self.fallen_open:
            self.fallen_open = False
            logger.info("the shared retry quota at %s answers again", self.place)


def log_back(scope: str | None, seconds: float, operations: int) -> None:
    """Log that a service is back, at WARNING if its outage hid the end of an operation from that level.

    :param operations: the operations that gave up meanwhile, of which the first was logged at WARNING.
    """
    service = "the service" if scope is None else display_scope(scope)
    level = logging.WARNING if operations > 1 else logging.INFO
    extra = {"retry_scope": service, "retry_down_for": seconds, "retry_gave_up": operations}
    count = f"{operations} operations" if operations > 1 else "1 operation"
    logger.log(level, "%s is back after %.1f s, in which %s gave up", service, seconds, count, extra=extra)
