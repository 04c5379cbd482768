"""The errors of a model (contract 3; Smithy 2.0 ``@error``, ``@retryable``, ``@httpError``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .json_ast import Ast, Node, shape_name

ERROR = "smithy.api#error"
HTTP_ERROR = "smithy.api#httpError"
RETRYABLE = "smithy.api#retryable"
QUERY_ERROR = "aws.protocols#awsQueryError"


@dataclass(frozen=True, slots=True)
class ModeledError:
    """One error shape of a model."""

    name: str
    """The shape's name, without its namespace."""
    shape_id: str
    """The shape's absolute ID."""
    fault: Literal["client", "server"]
    """The party at fault, from ``@error``."""
    http_status: int | None
    """The status, from ``@httpError`` or ``@awsQueryError``, or None."""
    retryable: bool
    """True with ``@retryable``. Without it there is no opinion, not a "no"."""
    throttling: bool
    """True with ``@retryable(throttling: true)``."""


def read_errors(ast: Ast) -> dict[str, tuple[ModeledError, ...]]:
    """Return the errors of the model by code.

    Several errors can share a code: from two namespaces, or through ``@awsQueryError``.

    :raises SmithyModelError: if a trait has an invalid value.
    """
    found: dict[str, tuple[ModeledError, ...]] = {}
    for shape_id in ast.by_type.get("structure", ()):
        traits = ast.traits(shape_id)
        if ERROR not in traits:
            continue
        query_error = traits.get(QUERY_ERROR)
        error = _read_error(shape_id, traits, query_error)
        codes = [error.name]
        if query_error is not None:
            codes.append(query_error.needed("code").string())
        for code in dict.fromkeys(codes):
            found[code] = (*found.get(code, ()), error)
    return found


def _read_error(shape_id: str, traits: dict[str, Node], query_error: Node | None) -> ModeledError:
    fault = traits[ERROR].value
    if fault not in ("client", "server"):
        raise traits[ERROR].error('"client" or "server"')
    status: int | None = None
    if HTTP_ERROR in traits:
        status = traits[HTTP_ERROR].integer()
    elif query_error is not None:
        status = query_error.needed("httpResponseCode").integer()
    throttling = False
    retryable = traits.get(RETRYABLE)
    if retryable is not None:
        flag = None if retryable.value is True else retryable.child("throttling")
        throttling = flag is not None and flag.boolean()
    return ModeledError(shape_name(shape_id), shape_id, fault, status, retryable is not None, throttling)
