"""The default classifiers (contract 3.4), one file each."""

from __future__ import annotations

from ..classifier import RetryClassifier
from ..config import RetryConfig
from .aws_error_code import AwsErrorCodeClassifier
from .hinted_status import hinted_status_classifiers
from .http_status import HttpStatusCodeClassifier
from .idempotency_key import IdempotencyKeyClassifier
from .modeled import ModeledAsRetryableClassifier
from .smithy_model import SmithyModelClassifier
from .transient import TransientErrorClassifier

__all__ = [
    "AwsErrorCodeClassifier",
    "HttpStatusCodeClassifier",
    "IdempotencyKeyClassifier",
    "ModeledAsRetryableClassifier",
    "SmithyModelClassifier",
    "TransientErrorClassifier",
    "default_classifiers",
]


def default_classifiers(config: RetryConfig | None = None) -> tuple[RetryClassifier, ...]:
    """The defaults as a config wants them, lowest priority first; the resend rule is not among them.

    :param config: whose statuses, ``error_parser`` and ``models`` hold; without one, the defaults.
    """
    config = RetryConfig() if config is None else config
    return (
        *hinted_status_classifiers(config),
        HttpStatusCodeClassifier(config.retry_status_codes),
        IdempotencyKeyClassifier(),
        AwsErrorCodeClassifier(),
        *([SmithyModelClassifier(config.models)] if config.models else []),
        ModeledAsRetryableClassifier(config.error_parser),
        TransientErrorClassifier(),
    )
