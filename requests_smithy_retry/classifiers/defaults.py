"""The classifiers that a strategy starts with (contract 3.4)."""

from __future__ import annotations

from ..classifiers.aws import AwsErrorCodeClassifier
from ..classifiers.modeled import ModeledAsRetryableClassifier
from ..classifiers.protocol import RetryClassifier
from ..classifiers.statuses import HintedStatusClassifier, HttpStatusCodeClassifier, IdempotencyKeyClassifier
from ..classifiers.transport_faults import TransientErrorClassifier
from ..config.retry_config import RetryConfig
from ..pacing.announced import DIALECTS, dialects_of
from ..smithy.model_classifier import SmithyModelClassifier


def default_classifiers(config: RetryConfig | None = None) -> tuple[RetryClassifier, ...]:
    """Return the default classifiers that a config asks for, lowest priority first, without the resend rule.

    :param config: whose statuses, ``error_parser`` and ``models`` hold; without one, the defaults.
    """
    config = RetryConfig() if config is None else config
    rules = config.urllib3_rules
    return (
        *([HintedStatusClassifier(rules.hinted_status_codes)] if rules and rules.hinted_status_codes else []),
        # A translated ``Retry`` goes by the status alone, as urllib3 does.
        HttpStatusCodeClassifier(
            config.retry_status_codes,
            dialects=(dialects_of(config.pacing) or DIALECTS) if rules is None else None,
        ),
        IdempotencyKeyClassifier(),
        AwsErrorCodeClassifier(),
        *([SmithyModelClassifier(config.models)] if config.models else []),
        ModeledAsRetryableClassifier(config.error_parser),
        TransientErrorClassifier(),
    )
