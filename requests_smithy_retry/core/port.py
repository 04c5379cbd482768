"""The port of features: the only ways in which one may take part in an operation. The heart knows no feature by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .machine import Gate, Remedy

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ..classifiers.fold import Classification
    from ..classifiers.outcome import Outcome
    from ..classifiers.protocol import RetryClassifier
    from ..config.retry_config import RetryConfig
    from .driver import Call, Driver
    from .scope import Scope


class Vouched(NamedTuple):
    """What is known of a request besides its method.

    :param resendable: it may be sent again.
    :param long_poll: it is a long poll.
    """

    resendable: bool = False
    long_poll: bool = False


class Feature:
    """The hooks of a feature. Override what is needed: a hook that is not overridden costs nothing."""

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:  # noqa: ARG002
        """Return classifiers to be asked beside the default ones."""
        return ()

    def vouch(self, request: PreparedRequest) -> Vouched | None:  # noqa: ARG002
        """Tell of a request that failed whether it may be sent again; None: nothing is known of it."""
        return None

    def gate(self, call: Call, scope: Scope) -> Gate | None:  # noqa: ARG002
        """Return what holds the attempts of a call back; None: nothing does now. Asked before each call."""
        return None

    def received(self, driver: Driver, call: Call, request: PreparedRequest, response: Response, scope: Scope) -> None:
        """Take in a response of which nothing of the body was read.

        :param request: as it was sent.
        """

    def remedy(self, call: Call) -> Remedy | None:  # noqa: ARG002
        """Return a mend for failed attempts of a call; None: there is none."""
        return None

    def judged(self, call: Call, scope: Scope, outcome: Outcome, verdict: Classification) -> None:
        """Take in the verdict on an attempt."""

    def attempted(self, call: Call, outcome: Outcome) -> None:
        """Take in the end of an attempt that failed."""


HOOKS = tuple(name for name in vars(Feature) if not name.startswith("_"))


def hooked(features: Iterable[Feature], name: str) -> tuple[Callable[..., Any], ...]:
    """Return one hook of all features that override it."""
    return tuple(
        getattr(feature, name) for feature in features if getattr(type(feature), name) is not getattr(Feature, name)
    )
