"""The seams of features (contract 2). The core imports no feature; :mod:`~requests_smithy_retry.features.table` lists
them.

A feature may add classifiers, read hints, check ahead of each delay, wrap each send, and receive each verdict on a
failure. Code that only observes is a listener.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ..classifiers.fold import Classification
    from ..classifiers.outcome import Outcome
    from ..classifiers.protocol import RetryClassifier
    from ..config.retry_config import RetryConfig
    from ..errors import StopReason
    from ..observing.history import RetryHistory
    from ..observing.summary import Counters
    from ..wire.state import Peer
    from .call import Call
    from .server_hints import Hint

    Send = Callable[[Call], Response]
    """Makes one attempt of a call, and returns the response with its body unread, or raises."""


class Feature:
    """The seams of a feature. Override what is needed."""

    is_optional = False
    """Only an option enables it, so its classifiers are asked in addition to those of any strategy."""

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:
        """Return classifiers to be asked in addition to the default ones."""
        return ()

    def hint(self, outcome: Outcome) -> Hint | None:
        """Return the wait that a throttling response asks for without ``Retry-After``, or None."""
        return None

    def around(self, send: Send, call: Call) -> Response:
        """Make one attempt with ``send``, after whatever has to come before it.

        To wait, use the clock of the call. To end the call without the attempt, raise ``RetryError``.
        """
        return send(call)

    def check_ahead(self, call: Call, delay: float) -> None:
        """End the call before the delay of a retry, if it is known that ``around`` would end it afterwards."""

    def judged(self, call: Call, outcome: Outcome, verdict: Classification) -> None:
        """Receive the verdict on an attempt that failed, or that a classifier looked at."""


class Sent(NamedTuple):
    """The attempt that brings a body, with what is needed to continue the body.

    :param number: in the history, from 1.
    :param started: the moment on the clock.
    :param peer: the far end of its connection.
    :param request: as it was sent: the rest is asked for with the same headers.
    """

    number: int
    started: float
    peer: Peer | None
    request: PreparedRequest


class Rest(Protocol):
    """The rest of a body that broke off, which a call of its own requests."""

    brought_by: Sent
    """The attempt that brought the body to where it broke off."""
    is_streamed: bool
    """The caller reads the body. False: an attempt does, and its operation reports how that ends."""
    is_taken: bool
    """True once an answer has continued the body."""

    @property
    def refusal(self) -> tuple[StopReason, str] | None:
        """The reason why the rest cannot be requested, and its phrase; None: it can."""

    def receive(self, response: Response, sent: Sent) -> object:
        """Receive an answer whose body is unread, and the attempt that brought it."""

    def ending(self, reason: StopReason, why: str) -> tuple[StopReason, str]:
        """Return the stop reason of the call and its phrase, given those of its last answer."""

    def count(self, counters: Counters, scope: str, history: RetryHistory) -> None:
        """Count the call as a part of the one whose body it continues."""


def overrides(feature: Feature, name: str) -> bool:
    """Return True if a feature has a method of its own for a seam."""
    return getattr(type(feature), name) is not getattr(Feature, name)


def send_attempt(call: Call) -> Response:
    """Make one attempt with the adapter of the call. A bound method would keep dropped adapters alive."""
    return call.adapter._send_attempt(call)


def composed(features: tuple[Feature, ...]) -> Send:
    """Return a send wrapped in all features that override ``around``, the first one outermost."""
    send: Send = send_attempt
    for feature in reversed(features):
        if overrides(feature, "around"):
            send = partial(feature.around, send)
    return send
