"""The default classifiers (contract 3.4), one file each."""

from __future__ import annotations

from ..classifier import RetryClassifier
from ..config import RetryConfig
from .http_status import HttpStatusCodeClassifier
from .modeled import ModeledAsRetryableClassifier
from .transient import TransientErrorClassifier

__all__ = [
    "HttpStatusCodeClassifier",
    "ModeledAsRetryableClassifier",
    "TransientErrorClassifier",
    "default_classifiers",
]


def default_classifiers(config: RetryConfig) -> tuple[RetryClassifier, ...]:
    """The defaults as a config wants them, lowest priority first; the resend rule is not among them."""
    return (
        HttpStatusCodeClassifier(config.retry_status_codes),
        ModeledAsRetryableClassifier(config.error_parser),
        TransientErrorClassifier(),
    )
