"""Matching a request to an operation by the service's protocols (contract 3, 4).

A request that names two operations, or names one in the wrong place, matches none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..copying import PicklesByEveryProtocol
from .operations import ModeledOperation
from .protocols import Protocol
from .request_parts import body_text, header, parameters
from .uri_pattern import UriTrie

_FORM_PROTOCOLS = (Protocol.QUERY, Protocol.EC2_QUERY)


class OperationMatcher(PicklesByEveryProtocol):
    """Finds the operation of a request to one service.

    :param service_name: the name of the service shape.
    :param operations: the operations for each protocol of the service, with tokens bound accordingly.
    """

    __slots__ = ("_forms", "_rpc", "_service", "_targets", "_trie")

    def __init__(self, service_name: str, operations: Mapping[Protocol, Iterable[ModeledOperation]]) -> None:
        self._service = service_name
        self._targets = _by_name(operations.get(Protocol.JSON_TARGET, ()))
        self._rpc = _by_name(operations.get(Protocol.RPC_V2, ()))
        self._forms = _by_name(each for protocol in _FORM_PROTOCOLS for each in operations.get(protocol, ()))
        rest = operations.get(Protocol.REST_JSON, operations.get(Protocol.REST_XML, ()))
        self._trie = UriTrie(
            (each.http_method, each.uri_pattern, each)
            for each in rest
            if each.http_method is not None and each.uri_pattern is not None
        )

    def match(
        self, method: str, segments: tuple[str, ...], query: str, headers: Mapping[str, Any], body: object
    ) -> ModeledOperation | None:
        """Return the operation of a request, or None.

        :param segments: the path below the service's endpoint, from :func:`~.request_parts.path_segments`.
        """
        if self._targets:
            target = header(headers, "X-Amz-Target")
            if target is not None:
                return self._by_target(method, segments, target)
        if self._rpc and (header(headers, "smithy-protocol") or "").startswith("rpc-v2-"):
            return self._by_rpc_path(method, segments)
        if self._forms and segments == () and method in ("GET", "POST"):
            found = self._by_action(query, body)
            if found is not None:
                return found
        return self._trie.find(method, segments, query)

    def _by_target(self, method: str, segments: tuple[str, ...], target: str) -> ModeledOperation | None:
        service, _, name = target.partition(".")
        if method != "POST" or segments != () or service != self._service:
            return None
        return self._targets.get(name)

    def _by_rpc_path(self, method: str, segments: tuple[str, ...]) -> ModeledOperation | None:
        if method != "POST" or len(segments) != 4 or segments[:3] != ("service", self._service, "operation"):
            return None
        return self._rpc.get(segments[3])

    def _by_action(self, query: str, body: object) -> ModeledOperation | None:
        actions = set(parameters(query).get("Action", ()))
        actions.update(parameters(body_text(body) or "").get("Action", ()))
        return self._forms.get(actions.pop()) if len(actions) == 1 else None


def _by_name(operations: Iterable[ModeledOperation]) -> dict[str, ModeledOperation]:
    return {operation.name: operation for operation in operations}
