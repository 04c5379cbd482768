"""Published Smithy models and what AWS adds to them, for the retry layer. Each name is imported on first use."""
# ruff: noqa: I001 - "as" exports a name to type checkers

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .aws import AwsErrorCodeClassifier as AwsErrorCodeClassifier, SdkHeaders as SdkHeaders
    from .error_code import bare_error_code as bare_error_code
    from .json_ast import SmithyModelError as SmithyModelError
    from .model import (
        SmithyEndpoint as SmithyEndpoint,
        SmithyModel as SmithyModel,
        SmithyModelClassifier as SmithyModelClassifier,
    )
    from .operations import (
        ModeledError as ModeledError,
        ModeledOperation as ModeledOperation,
        UriPattern as UriPattern,
        verdict_for as verdict_for,
    )
    from .protocols import IdempotencyToken as IdempotencyToken, Protocol as Protocol, TokenLocation as TokenLocation
else:  # pragma: no branch - a type checker would accept any name
    _HOMES = {
        ".aws": "AwsErrorCodeClassifier SdkHeaders",
        ".error_code": "bare_error_code",
        ".json_ast": "SmithyModelError",
        ".model": "SmithyEndpoint SmithyModel SmithyModelClassifier",
        ".operations": "ModeledError ModeledOperation UriPattern verdict_for",
        ".protocols": "IdempotencyToken Protocol TokenLocation",
    }
    """The names by module."""

    __all__ = sorted(" ".join(_HOMES.values()).split())

    def __getattr__(name: str) -> object:
        """Import the file of a name, and keep the name for the next time."""
        from importlib import import_module

        for home, names in _HOMES.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(home, __name__), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
