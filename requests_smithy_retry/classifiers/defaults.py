"""The classifiers that a strategy starts with (contract 3.4)."""

from __future__ import annotations

from collections.abc import Iterable

from ..config.retry_config import DEFAULTS, RetryConfig
from ..core.port import Feature
from .modeled import ModeledAsRetryableClassifier
from .protocol import RetryClassifier, in_order
from .statuses import HttpStatusCodeClassifier, IdempotencyKeyClassifier
from .transport_faults import TransientErrorClassifier


def default_classifiers(
    config: RetryConfig | None = None, features: Iterable[Feature] | None = None
) -> tuple[RetryClassifier, ...]:
    """Return the default classifiers that a config asks for, lowest priority first, without the resend rule.

    :param config: the config whose statuses and features apply; without one, the defaults.
    :param features: those that the config asks for; None: they are looked up.
    """
    config = DEFAULTS if config is None else config
    if features is None:
        from ..features.table import judging_features  # they import what only they need

        features = judging_features(config)
    codes, rules = config.retry_status_codes, config.rules
    return in_order(
        (
            *((HttpStatusCodeClassifier(codes),) if rules is None else rules.classifiers(codes)),
            IdempotencyKeyClassifier(),
            ModeledAsRetryableClassifier(),
            TransientErrorClassifier(),
            *(item for feature in features for item in feature.classifiers(config)),
        )
    )
