"""What Smithy models say of a request (issue 3): may it be sent again, is it a long poll. Pure.

Looked at after a failure only, once for an operation, so that a success costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from requests import PreparedRequest

    from .smithy import SmithyEndpoint


class ModelFacts(NamedTuple):
    """What the models say.

    :param resendable: the operation is readonly or idempotent, or its idempotency token is in the request.
    :param long_poll: the operation is a long poll.
    """

    resendable: bool = False
    long_poll: bool = False


def facts_of(models: Iterable[SmithyEndpoint], request: PreparedRequest) -> ModelFacts:
    """The facts by the first model that knows the request's operation.

    :param models: each with the endpoint it speaks for.
    :param request: looked at, never changed; a body that is a file or a generator is not read.
    """
    method, url, headers = str(request.method).upper(), str(request.url), request.headers
    for endpoint in models:
        operation = endpoint.operation_for(method, url, headers, request.body)
        if operation is not None:
            return ModelFacts(operation.resendable_with(url, headers, request.body), operation.long_poll)
    return ModelFacts()
