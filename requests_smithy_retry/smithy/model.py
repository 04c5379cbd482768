"""A published Smithy model: its errors and operations, as far as a retry needs them, and its endpoint (contract 3, 4).

A model is read and checked once, and never changes. It applies only to requests to its endpoint: a greedy pattern
matches almost any path, so a model could otherwise allow a retry of another service's POST. A URL that two parsers
could read differently (a backslash, a control character, a dot segment) belongs to no endpoint.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ..checks import safe_repr
from ..classifiers.actions import NO_ACTION, NoActionIndicated, RetryAction
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import RetryClassifierPriority, Vouched
from ..urls import DEFAULT_PORTS
from .error_code import error_code
from .json_ast import Ast, Node, SmithyModelError, pointer, shape_name
from .operations import (
    ModeledError,
    ModeledOperation,
    UriTable,
    bound_operations,
    read_errors,
    read_operation,
    verdict_for,
)
from .protocols import Protocol, body_text, header, parameters, path_segments, protocols_of, split_target

if TYPE_CHECKING:
    from requests import PreparedRequest
else:  # pragma: no branch - for typing.get_type_hints; classifiers know no HTTP library
    PreparedRequest = Any


class SmithyModel:
    """A Smithy model. Make one with :meth:`load`; give it to requests with :meth:`for_endpoint`."""

    def __init__(self, root: Node, service: str | None) -> None:
        ast = Ast(root)
        self.source: str = root.source
        """The file of the model."""
        self.service: str | None = _service_of(ast, service)
        """The absolute shape ID of the service; None for a model of errors only."""
        self.protocols: tuple[Protocol, ...] = ()
        """The protocols of the service, in the model's order."""
        self._verdicts = read_errors(ast)
        self._errors = {code: errors[0] for code, errors in self._verdicts.items()}
        shape_ids: list[str] = []
        if self.service is not None:
            self.protocols = protocols_of(ast.traits(self.service))
            shape_ids = bound_operations(ast, self.service)
        bound = {protocol: [read_operation(ast, each, protocol) for each in shape_ids] for protocol in self.protocols}
        self._operations = _by_name(self.source, next(iter(bound.values()), []))
        self._name = shape_name(self.service or "")
        self._targets, self._rpc, self._forms = (
            {each.name: each for protocol in protocols for each in bound.get(protocol, ())}
            for protocols in ((Protocol.JSON_TARGET,), (Protocol.RPC_V2,), (Protocol.QUERY, Protocol.EC2_QUERY))
        )
        rest = bound.get(Protocol.REST_JSON, bound.get(Protocol.REST_XML, ()))
        self._uris = UriTable(
            (each.http_method or "", each.uri_pattern, each) for each in rest if each.uri_pattern is not None
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, service: str | None = None) -> SmithyModel:
        """Read a model from a file with its JSON AST.

        :param service: the absolute shape ID of the service, for a model that has several.
        :raises SmithyModelError: if the file cannot be read, or is not a model; it names the path and the place.
        """
        source = os.fspath(path)
        try:
            with open(source, "rb") as file:
                text = file.read().decode("utf-8-sig")
            ast = json.loads(text)
        except (OSError, ValueError, RecursionError) as problem:
            raise SmithyModelError(source, "", f"cannot be read: {problem}") from problem
        return cls.from_dict(ast, source, service=service)

    @classmethod
    def from_dict(cls, ast: Any, source: str = "<model>", *, service: str | None = None) -> SmithyModel:
        """Read a model from a parsed AST.

        :param source: its name in errors.
        :param service: the absolute shape ID of the service, for a model that has several.
        :raises SmithyModelError: if it is not a model; it names the source and the place.
        """
        try:
            return cls(Node(ast, source), service)
        except RecursionError:
            raise SmithyModelError(source, "", "expected shapes that are not nested without end") from None

    def __repr__(self) -> str:
        counts = f"{len(self._operations)} operations, {len(self._errors)} errors"
        return f"<SmithyModel {self.service or 'without a service'}: {counts}>"

    @property
    def errors(self) -> Mapping[str, ModeledError]:
        """The errors by shape name and by the code of ``@awsQueryError``; the first, if several share a code."""
        return MappingProxyType(self._errors)

    @property
    def operations(self) -> Mapping[str, ModeledOperation]:
        """The operations bound to the service, by name, with tokens bound as in its first protocol."""
        return MappingProxyType(self._operations)

    def verdict_for(self, error_code: str | None, status: int | None) -> RetryAction:
        """Return the verdict on an error; see :func:`~requests_smithy_retry.smithy.verdict_for`."""
        return verdict_for(self._verdicts, error_code, status)

    def match(
        self, method: str, url_path_with_query: str, headers: Mapping[str, Any], body: object
    ) -> ModeledOperation | None:
        """Return the operation of a request to a service at the root of any host, or None.

        :param body: bytes or text; an operation named in anything else is not found.
        """
        path, query = split_target(url_path_with_query)
        segments = path_segments(path)
        return None if segments is None else self.match_segments(method, segments, query, headers, body)

    def match_segments(
        self, method: str, segments: tuple[str, ...], query: str, headers: Mapping[str, Any], body: object
    ) -> ModeledOperation | None:
        """Return what :meth:`match` does, for a path that is already split.

        A request that names two operations, or names one in the wrong place, matches none.
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
        return self._uris.find(method, segments, query)

    def _by_target(self, method: str, segments: tuple[str, ...], target: str) -> ModeledOperation | None:
        service, _, name = target.partition(".")
        if method != "POST" or segments != () or service != self._name:
            return None
        return self._targets.get(name)

    def _by_rpc_path(self, method: str, segments: tuple[str, ...]) -> ModeledOperation | None:
        if method != "POST" or len(segments) != 4 or segments[:3] != ("service", self._name, "operation"):
            return None
        return self._rpc.get(segments[3])

    def _by_action(self, query: str, body: object) -> ModeledOperation | None:
        actions = set(parameters(query).get("Action", ()))
        actions.update(parameters(body_text(body) or "").get("Action", ()))
        return self._forms.get(actions.pop()) if len(actions) == 1 else None

    def for_endpoint(self, url: str) -> SmithyEndpoint:
        """Bind this model to an endpoint.

        :param url: such as ``https://api.example.com/base``.
        :raises ValueError: if the URL is not an endpoint.
        """
        return SmithyEndpoint(self, url)


def _service_of(ast: Ast, wanted: str | None) -> str | None:
    services = ast.by_type.get("service", [])
    if wanted is not None and wanted not in services:
        raise ast.root.error(f"a model with the service {wanted!r}")
    if wanted is None and len(services) > 1:
        raise ast.root.error(f"one service, or service= with one of {', '.join(sorted(services))}")
    return wanted or (services[0] if services else None)


def _by_name(source: str, operations: list[ModeledOperation]) -> dict[str, ModeledOperation]:
    found: dict[str, ModeledOperation] = {}
    for operation in operations:
        if found.setdefault(operation.name, operation) is not operation:
            problem = "expected one operation of this name in the service, found several"
            raise SmithyModelError(source, pointer(("shapes", operation.shape_id)), problem)
    return found


_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f\\]")
_AUTHORITY_END = re.compile(r"[/?#]")
_HOST = re.compile(r"[a-z0-9._-]+")


class _Place(NamedTuple):
    scheme: str
    host: str
    port: int
    segments: tuple[str, ...]
    query: str


def _locate(url: str) -> _Place | None:
    if _NOT_IN_A_URL.search(url) is not None:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        is_ipv6 = ":" in host
        host = ipaddress.ip_address(host).compressed if is_ipv6 else host
    except ValueError:
        return None
    segments = path_segments(parts.path)
    if parts.scheme not in DEFAULT_PORTS or segments is None or not (is_ipv6 or _HOST.fullmatch(host)):
        return None
    return _Place(parts.scheme, host, DEFAULT_PORTS[parts.scheme] if port is None else port, segments, parts.query)


@dataclass(frozen=True, slots=True)
class SmithyEndpoint:
    """A model and its endpoint, made by :meth:`SmithyModel.for_endpoint`.

    A request goes to the endpoint if scheme, host (in any case), port and the segments of the path prefix are the same.
    The host may have a prefix that the model itself defines (``@endpoint``, without labels).

    :raises ValueError: if the URL is not a plain ``http://`` or ``https://`` URL without a query and a fragment.
    """

    model: SmithyModel = field(repr=False)
    """The model."""
    url: str
    """The endpoint as the user named it, but without userinfo."""
    _place: _Place = field(init=False, repr=False, compare=False)
    _prefixes: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        scheme, mark, rest = self.url.partition("://")
        authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
        object.__setattr__(self, "url", scheme + mark + authority.rpartition("@")[2] + rest[len(authority) :])
        place = _locate(self.url)
        if place is None or "?" in self.url or "#" in self.url:
            shown = self.url.rpartition("@")[2]  # even an invalid URL may hold userinfo
            raise ValueError(
                f"endpoint {shown!r}: an http:// or https:// URL with an ASCII host, and without a query, "
                "a fragment and dot segments, is allowed"
            )
        prefixes = {place.host: ""}
        # An IPv4 address takes no prefix, and an IPv6 address with one is not a valid host.
        if not place.host.rpartition(".")[2].isdigit():
            for operation in self.model.operations.values():
                prefixes.setdefault(operation.host_prefix + place.host, operation.host_prefix)
        object.__setattr__(self, "_place", place)
        object.__setattr__(self, "_prefixes", prefixes)

    def speaks_for(self, url: str) -> bool:
        """Return True if a request to this URL goes to the endpoint."""
        return self._within(url) is not None

    def operation_for(self, method: str, url: str, headers: Mapping[str, Any], body: object) -> ModeledOperation | None:
        """Return the operation of a request, or None if it goes elsewhere or the model does not know it.

        :param body: bytes or text; an operation named in anything else is not found.
        """
        there = self._within(url)
        if there is None:
            return None
        below = there.segments[len(self._place.segments) :]
        operation = self.model.match_segments(method, below, there.query, headers, body)
        if operation is None or self._prefixes[there.host] not in ("", operation.host_prefix):
            return None
        return operation

    def _within(self, url: str) -> _Place | None:
        there, here = _locate(url), self._place
        if there is None or there.host not in self._prefixes or (there.scheme, there.port) != (here.scheme, here.port):
            return None
        return there if there.segments[: len(here.segments)] == here.segments else None


class SmithyModelClassifier:
    """Classifies ``@retryable`` errors as transient, or as throttling if the trait says so; no opinion on others.

    It runs just before :class:`ModeledAsRetryableClassifier`, whose parser overrules the model. It also knows which
    operations may be sent again whatever their method, and which are long polls.

    :param models: models with their endpoints; the first one with an opinion decides.
    :raises TypeError: for a model without its endpoint.
    """

    name = "SmithyModelClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_before(
        RetryClassifierPriority.modeled_as_retryable_classifier()
    )

    def __init__(self, models: Iterable[SmithyEndpoint]) -> None:
        self.models: tuple[SmithyEndpoint, ...] = tuple(models)
        for model in self.models:
            if not isinstance(model, SmithyEndpoint):
                raise TypeError(f"{safe_repr(model)} does not know its endpoint: give model.for_endpoint(url)")

    def vouch(self, request: PreparedRequest) -> Vouched | None:
        """Return what the first model that knows the request's operation says about it."""
        method, url, headers = str(request.method).upper(), str(request.url), request.headers
        for endpoint in self.models:
            operation = endpoint.operation_for(method, url, headers, request.body)
            if operation is not None:
                return Vouched(operation.resendable_with(url, headers, request.body), operation.long_poll)
        return None

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the error's code in the model."""
        response = outcome.response
        if response is None or outcome.request is None or response.status_code < 400:
            return NO_ACTION
        code = error_code(response.headers, outcome.body_prefix)
        if code is not None:
            for endpoint in self.models:
                if endpoint.speaks_for(str(outcome.request.url)):
                    verdict = endpoint.model.verdict_for(code, outcome.status)
                    if not isinstance(verdict, NoActionIndicated):
                        return verdict
        return NO_ACTION
