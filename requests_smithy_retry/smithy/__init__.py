"""Published Smithy models for the retry layer. Each name is imported on first use."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..classifiers.aws import bare_error_code
    from .endpoint import SmithyEndpoint
    from .json_ast import SmithyModelError
    from .model import SmithyModel
    from .model_classifier import verdict_for
    from .operations import ModeledError, ModeledOperation
    from .protocols import IdempotencyToken, Protocol, TokenLocation
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

_HOMES = {
    "..classifiers.aws": ("bare_error_code",),
    ".endpoint": ("SmithyEndpoint",),
    ".json_ast": ("SmithyModelError",),
    ".model": ("SmithyModel",),
    ".model_classifier": ("verdict_for",),
    ".operations": ("ModeledError", "ModeledOperation"),
    ".protocols": ("IdempotencyToken", "Protocol", "TokenLocation"),
    ".uri_pattern": ("UriPattern",),
}
"""The module of each name."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Import the file of a name, and keep the name for the next time."""
        from importlib import import_module

        for home, names in _HOMES.items():
            if name in names:
                value = globals()[name] = getattr(import_module(home, __name__), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
