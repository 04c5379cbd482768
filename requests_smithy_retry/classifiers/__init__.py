"""Classifiers: they say whether an attempt is worth a retry (contract 3). Each name is imported on first use."""
# ruff: noqa: I001 - "as" exports a name to type checkers

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .actions import (
        ErrorKind as ErrorKind,
        NoActionIndicated as NoActionIndicated,
        RetryAction as RetryAction,
        RetryForbidden as RetryForbidden,
        RetryIndicated as RetryIndicated,
        RetryReason as RetryReason,
    )
    from .defaults import default_classifiers as default_classifiers
    from .fold import Classification as Classification, Vote as Vote, classify as classify
    from .modeled import (
        ErrorInBodyClassifier as ErrorInBodyClassifier,
        ModeledAsRetryableClassifier as ModeledAsRetryableClassifier,
    )
    from .outcome import ErrorRetryInfo as ErrorRetryInfo, HasFault as HasFault, Outcome as Outcome
    from .protocol import (
        Only as Only,
        RetryClassifier as RetryClassifier,
        RetryClassifierPriority as RetryClassifierPriority,
        Vouched as Vouched,
        classifier as classifier,
        only as only,
        with_priority as with_priority,
    )
    from .statuses import (
        HttpStatusCodeClassifier as HttpStatusCodeClassifier,
        IdempotencyKeyClassifier as IdempotencyKeyClassifier,
    )
    from .transport_faults import TransientErrorClassifier as TransientErrorClassifier
else:  # pragma: no branch - a type checker would accept any name
    _HOMES = {
        "actions": "ErrorKind NoActionIndicated RetryAction RetryForbidden RetryIndicated RetryReason",
        "defaults": "default_classifiers",
        "fold": "Classification Vote classify",
        "modeled": "ErrorInBodyClassifier ModeledAsRetryableClassifier",
        "outcome": "ErrorRetryInfo HasFault Outcome",
        "protocol": "Only RetryClassifier RetryClassifierPriority Vouched classifier only with_priority",
        "statuses": "HttpStatusCodeClassifier IdempotencyKeyClassifier",
        "transport_faults": "TransientErrorClassifier",
    }
    """The names by module. The modules import each other directly, never from here."""

    __all__ = sorted(" ".join(_HOMES.values()).split())

    def __getattr__(name: str) -> object:
        """Import the module of a name, and keep the name for the next time."""
        from importlib import import_module

        for home, names in _HOMES.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
