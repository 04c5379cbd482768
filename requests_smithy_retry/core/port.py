"""The port of features: the hooks by which they take part in an operation. The heart imports none of them.

Two have ways of their own besides. The adapter is built on the one that knows the ``Retry`` of urllib3
(:mod:`~requests_smithy_retry.features.urllib3_retry`), whose counts are a part of the :class:`~.policy.Policy`. A body
that is resumed comes back by :meth:`~.driver.Driver.go_on`; what its outcome says of that has a field in the heart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..errors import StopReason

if TYPE_CHECKING:
    from requests import PreparedRequest, Request, Response

    from ..classifiers.fold import Classification
    from ..classifiers.outcome import Outcome
    from ..classifiers.protocol import RetryClassifier
    from ..config.retry_config import RetryConfig
    from ..wire.state import Peer
    from .driver import Driver
    from .machine import FirstGate, Remedy
    from .plan import Call
    from .scope import Scope
    from .server_hints import Hint
else:  # pragma: no branch - for typing.get_type_hints; strategies know no HTTP library
    PreparedRequest = Request = Response = Any


class WaitEnded(Exception):
    """A feature ends a call that waits, or is about to. Its subclasses are what the caller gets.

    :param stop_reason: for the history; the message is its phrase.
    """

    stop_reason: StopReason
    seconds: float | None = None
    """When it is worth to call again, from now on; None: nothing is known of that."""
    request: Request | PreparedRequest | None = None
    response: Response | None = None


class Feature:
    """The hooks of a feature. Override what is needed: a hook that is not overridden costs nothing."""

    hears: frozenset[str] | None = None
    """The fields, in lower case, of which a response has one that :meth:`received` takes in; None: any.

    It is asked of any, too, with listeners to bodies, in a block of ``retry_options``, and where the scope has
    parts.
    """

    only_in_blocks: bool = False
    """:meth:`wait` is asked only within a block of ``retry_options``."""

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:
        """Return classifiers to be asked beside the default ones."""
        return ()

    def hint(self, outcome: Outcome) -> Hint | None:
        """Return the wait that a throttling response asks for in another way than ``Retry-After``; None: for none."""
        return None

    def gate(self, call: Call, scope: Scope) -> FirstGate | None:
        """Return what holds the attempts of a call back; None: nothing does now. Asked before each attempt."""
        return None

    def received(self, driver: Driver, call: Call, request: PreparedRequest, response: Response, scope: Scope) -> None:
        """Take in a response of which nothing of the body was read.

        :param request: as it was sent.
        """

    def remedy(self, call: Call) -> Remedy | None:
        """Return a mend for failed attempts of a call; None: there is none."""
        return None

    def on_verdict(self, call: Call, scope: Scope, outcome: Outcome, verdict: Classification) -> None:
        """Take in the verdict on an attempt."""

    def attempted(self, call: Call, outcome: Outcome, peer: Peer | None, tried: set[tuple[str, str]]) -> None:
        """Take in the end of an attempt that failed.

        :param peer: the address that it reached.
        :param tried: addresses at which the operation has failed, each with its origin; a retry prefers others.
        """

    def wait(self, call: Call, seconds: float, waited: float, what: str) -> float:
        """Return for how many of the seconds that lie ahead a call waits until this is asked again.

        :param seconds: of a wait that is about to begin or goes on, as far as is known; or that another bound forbids.
        :param waited: seconds since the last attempt.
        :param what: is waited for, in a phrase.
        :raises WaitEnded: to end the call in place of the wait.
        """
        return seconds


HOOKS = tuple(name for name, value in vars(Feature).items() if callable(value))


def hooked(features: Iterable[Feature], name: str, *, is_in_block: bool = True) -> tuple[Callable[..., Any], ...]:
    """Return one hook of all features that override it.

    :param is_in_block: those that take part only in blocks of ``retry_options`` count, too.
    """
    return tuple(
        getattr(feature, name)
        for feature in features
        if getattr(type(feature), name) is not getattr(Feature, name) and (is_in_block or not feature.only_in_blocks)
    )


def heard_by(features: Iterable[Feature], name: str) -> frozenset[str] | None:
    """Return the fields of which a response has one that one of these hooks takes in; None: it may be any."""
    heard: frozenset[str] = frozenset()
    for hook in hooked(features, name):
        names = hook.__self__.hears  # type: ignore[attr-defined]
        if names is None:
            return None
        heard |= names
    return heard
