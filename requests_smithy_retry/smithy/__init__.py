"""Smithy models for the retry layer: this file only hands names on."""

from ..aws_error_codes import bare_error_code
from .classifier import verdict_for
from .endpoint import SmithyEndpoint
from .errors import SmithyModelError
from .idempotency_token import IdempotencyToken, TokenLocation
from .model import SmithyModel
from .modeled_errors import ModeledError
from .operations import ModeledOperation
from .protocols import Protocol
from .uri_pattern import UriPattern

__all__ = [
    "IdempotencyToken",
    "ModeledError",
    "ModeledOperation",
    "Protocol",
    "SmithyEndpoint",
    "SmithyModel",
    "SmithyModelError",
    "TokenLocation",
    "UriPattern",
    "bare_error_code",
    "verdict_for",
]
