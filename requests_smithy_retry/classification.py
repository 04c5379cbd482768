"""The fold over the classifiers (contract 3.2). Pure: it asks, it does not act."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .actions import NO_ACTION, ErrorKind, NoActionIndicated, RetryAction, RetryForbidden, RetryIndicated
from .classifier import RetryClassifier, in_order, sees_successes
from .operation_options import OperationOptions
from .outcome import Outcome
from .resend import RESEND_RULE


@dataclass(frozen=True, slots=True)
class Vote:
    """What one classifier said.

    :param classifier: its name.
    :param action: its verdict.
    """

    classifier: str
    action: RetryAction


@dataclass(frozen=True, slots=True)
class Classification:
    """What all classifiers together said.

    :param action: the verdict.
    :param votes: who said what, in the order of asking.
    """

    action: RetryAction
    votes: tuple[Vote, ...] = ()

    @property
    def is_throttling(self) -> bool:
        """Whether a retry is indicated because the server asked for fewer requests."""
        action = self.action
        return isinstance(action, RetryIndicated) and action.reason.kind is ErrorKind.THROTTLING


def classification_of(token: object) -> Classification | None:
    """What led to a token, where it says so: somebody else's may use the name for something of its own."""
    said = getattr(token, "classification", None)
    return said if isinstance(said, Classification) else None


def fold_of(own: tuple[RetryClassifier, ...], options: OperationOptions) -> tuple[RetryClassifier, ...]:
    """Who is asked about one operation, lowest priority first; the resend rule is always the last (contract 3.4).

    :param own: the strategy's classifiers, in order.
    :param options: whose classifiers are added to them, or replace them (contract 3.3).
    """
    kept = () if options.default_classifiers is False else own
    items = in_order((*kept, *options.classifiers)) if options.classifiers else kept
    return (*items, RESEND_RULE)


def classify(classifiers: Iterable[RetryClassifier], outcome: Outcome) -> Classification:
    """Ask each classifier in turn, lowest priority first.

    "No action" never overrides; any other verdict replaces the one before; "forbidden" ends the fold. An exception
    raised by a classifier is a bug in it and comes through. Of a success only those are asked that want to see it.

    :param classifiers: in order of priority.
    :param outcome: what the attempt ended with.
    :raises TypeError: if a classifier returns something that is no verdict.
    """
    action: RetryAction = NO_ACTION
    votes = []
    for item in classifiers:
        if outcome.is_success and not sees_successes(item):
            continue
        said = item.classify_retry(outcome, action)
        if said is None:
            said = NO_ACTION
        elif not isinstance(said, RetryAction):
            raise TypeError(f"the classifier {item.name!r} returned {said!r}: a RetryAction or None is allowed")
        votes.append(Vote(item.name, said))
        if not isinstance(said, NoActionIndicated):
            action = said
            if isinstance(said, RetryForbidden):
                break
    return Classification(action, tuple(votes))
