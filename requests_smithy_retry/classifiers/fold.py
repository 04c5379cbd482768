"""The fold over the classifiers (contract 3.2). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..interruptions import ask_within_strategy
from .actions import NO_ACTION, ErrorKind, NoActionIndicated, RetryAction, RetryForbidden, RetryIndicated, RetryReason
from .outcome import Outcome
from .protocol import Only, RetryClassifier, in_order, sees_successes


class Vote(NamedTuple):
    """The action that one classifier asks for.

    :param classifier: the classifier's name.
    :param action: what it asks for.
    """

    classifier: str
    action: RetryAction


class Classification(NamedTuple):
    """The verdict of all classifiers together.

    :param action: the verdict.
    :param votes: the verdict of each classifier, in the order of asking.
    """

    action: RetryAction
    votes: tuple[Vote, ...] = ()

    @property
    def is_throttling(self) -> bool:
        """True if a retry is indicated because the server asked for fewer requests."""
        return isinstance(self.action, RetryIndicated) and self.action.reason.kind is ErrorKind.THROTTLING


def reason_wanted(votes: Iterable[Vote]) -> RetryReason | None:
    """Return the last reason for which a classifier wanted a retry, even if another one forbids it; None: none did."""
    wanted = [vote.action.reason for vote in votes if isinstance(vote.action, RetryIndicated)]
    return wanted[-1] if wanted else None


def joined(own: tuple[RetryClassifier, ...], added: tuple[RetryClassifier, ...]) -> tuple[RetryClassifier, ...]:
    """Return classifiers in order, with the added ones that are missing; those of :func:`only` replace all others."""
    if isinstance(added, Only):
        return in_order(added)
    new = tuple(item for item in added if item not in own)
    return in_order((*own, *new)) if new else own


def classify(classifiers: Iterable[RetryClassifier], outcome: Outcome) -> Classification:
    """Ask each classifier in turn, lowest priority first.

    "No action" never overrides; any other verdict replaces the one before; "forbidden" ends the fold. A classifier's
    exception is raised to the caller. On a success, only classifiers with ``sees_successes`` are asked.

    :param classifiers: in order of priority.
    :param outcome: the outcome of the attempt.
    :raises TypeError: if a classifier returns anything but a verdict or None.
    :raises RuntimeError: if a classifier raises :class:`RetryError`, which is a strategy's refusal.
    """
    action: RetryAction = NO_ACTION
    votes, is_success = [], outcome.is_success
    for item in classifiers:
        if is_success and not sees_successes(item):
            continue
        given: object = ask_within_strategy(f"the classifier {item.name!r}", item.classify_retry, outcome, action)
        if given is None:
            given = NO_ACTION
        elif not isinstance(given, RetryAction):
            raise TypeError(f"the classifier {item.name!r} returned {given!r}: a RetryAction or None is allowed")
        votes.append(Vote(item.name, given))
        if not isinstance(given, NoActionIndicated):
            action = given
            if isinstance(given, RetryForbidden):
                break
    return Classification(action, tuple(votes))
