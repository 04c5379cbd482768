"""Whether a shared bucket answers: when to ask it again, and what is said and counted when it does not."""

from __future__ import annotations

import logging

from .settings import SharedQuotaSettings

logger: logging.Logger = logging.getLogger("requests_smithy_retry")


class Outage:
    """The state of one shared place. The caller tells the time; races of threads cost at most one more question.

    :param place: the place's name in the log, without secrets.
    :param settings: how often to ask again, and how often to log.
    """

    def __init__(self, place: str, settings: SharedQuotaSettings) -> None:
        self.place = place
        self.settings = settings
        self.fallen_open: bool = False
        self.failures: int = 0
        """Questions without an answer, since the start."""
        self._ask_at = 0.0
        self._log_at = float("-inf")

    def may_ask(self, now: float) -> bool:
        """Whether to ask the shared bucket now. While it is out, one caller at a time may."""
        if self.fallen_open:
            if now < self._ask_at:
                return False
            self._ask_at = now + self.settings.retry_interval
        return True

    def note_failure(self, now: float, why: str) -> None:
        """It did not answer: fall open.

        :param why: in a word, without secrets.
        """
        self.failures += 1
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
        """It answered: come back."""
        if self.fallen_open:
            self.fallen_open = False
            logger.info("the shared retry quota at %s answers again", self.place)
