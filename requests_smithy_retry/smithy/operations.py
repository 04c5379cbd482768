"""The operations of a model (contract 4), which of them may be sent again, with which token; and its errors.

Only operations bound to the service count, directly or through resources. Of the ``@http`` URI patterns that match a
request (Smithy 2.0, "HTTP bindings"), a literal segment beats a label, a label beats a greedy label, more segments beat
fewer, and last, more query literals beat fewer.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote

from ..classifiers.actions import NO_ACTION, ErrorKind, RetryAction, RetryReason
from .error_code import bare_error_code
from .json_ast import PRELUDE, Ast, Node, shape_name
from .protocols import IdempotencyToken, Protocol, bind_token, parameters

HTTP = "smithy.api#http"
READONLY = "smithy.api#readonly"
IDEMPOTENT = "smithy.api#idempotent"
IDEMPOTENCY_TOKEN = "smithy.api#idempotencyToken"
ENDPOINT = "smithy.api#endpoint"
LONG_POLL = ("smithy.api#longPoll", "aws.api#longPoll")
ERROR = "smithy.api#error"
HTTP_ERROR = "smithy.api#httpError"
RETRYABLE = "smithy.api#retryable"
QUERY_ERROR = "aws.protocols#awsQueryError"
LIFECYCLE = ("create", "put", "read", "update", "delete", "list")


class Label(enum.Enum):
    """A segment of a pattern that is not literal."""

    ONE = "{}"
    """Exactly one segment, not empty."""
    GREEDY = "{+}"
    """One segment or more."""


_RANKS: dict[str | Label, int] = {Label.ONE: 1, Label.GREEDY: 2}
_RANK_OF_THE_END = 3
_ANY = -1
"""Stands for the length of a pattern that matches paths of several lengths."""


@dataclass(frozen=True, slots=True)
class UriPattern:
    """One URI pattern.

    >>> UriPattern.parse("/buckets/{name}/{key+}?list-type=2").query
    (('list-type', '2'),)
    """

    text: str
    """The pattern as in the model."""
    segments: tuple[str | Label, ...]
    """Literal segments, decoded, and labels."""
    query: tuple[tuple[str, str | None], ...]
    """Query literals; the value is None if only the key is required."""

    @property
    def rank(self) -> tuple[tuple[int, ...], int]:
        """The sort key: of two patterns that match the same request, the lower one is more specific."""
        return (*(_RANKS.get(segment, 0) for segment in self.segments), _RANK_OF_THE_END), -len(set(self.query))

    def fits(self, segments: tuple[str, ...]) -> bool:
        """Return True if the pattern matches the segments of a path, as many as its own unless one is greedy."""
        own: tuple[str | Label, ...] = self.segments
        if Label.GREEDY in own:
            at = own.index(Label.GREEDY)
            end = len(segments) - (len(own) - at - 1)
            if end <= at or segments[at:end] == ("",):
                return False
            own, segments = own[:at] + own[at + 1 :], segments[:at] + segments[end:]
        for part, segment in zip(own, segments, strict=True):
            if part != segment and (part is not Label.ONE or segment == ""):
                return False
        return True

    @classmethod
    def parse(cls, text: str) -> UriPattern:
        """Read a pattern.

        :raises ValueError: with one phrase that says what is expected.
        """
        path, asked, query = text.partition("?")
        if not path.startswith("/"):
            raise ValueError('a URI pattern that starts with "/"')
        if "#" in text or "{" in query or "}" in query or (asked != "" and query == ""):
            raise ValueError("a URI pattern with no fragment, no label in its query, and a query that is not empty")
        parts = path[1:].split("/")
        if parts[-1] == "":
            parts.pop()
        segments = tuple(_segment(part) for part in parts)
        if segments.count(Label.GREEDY) > 1:
            raise ValueError("a URI pattern with at most one greedy label")
        literals = parse_qsl(query, keep_blank_values=True)
        return cls(text, segments, tuple((key, None if value == "" else value) for key, value in literals))


def _segment(part: str) -> str | Label:
    inner = part[1:-1]
    if part.startswith("{") and part.endswith("}") and inner.strip("+") != "":
        name, label = (inner[:-1], Label.GREEDY) if inner.endswith("+") else (inner, Label.ONE)
        if not any(mark in name for mark in "{}+"):
            return label
    literal = unquote(part)
    if "{" in part or "}" in part or literal in ("", ".", ".."):
        raise ValueError("a URI pattern whose segments are literals, {label} or {label+}, none empty and none a dot")
    return literal


class UriTable:
    """The patterns of one service."""

    def __init__(self, routes: Iterable[tuple[str, UriPattern, ModeledOperation]]) -> None:
        self._routes: dict[tuple[str, int], list[tuple[UriPattern, ModeledOperation]]] = {}
        for method, pattern, value in routes:
            length = _ANY if Label.GREEDY in pattern.segments else len(pattern.segments)
            self._routes.setdefault((method, length), []).append((pattern, value))

    def find(self, method: str, segments: tuple[str, ...], query: str) -> ModeledOperation | None:
        """Return the operation of the most specific matching pattern; None for no match, or for two equal ones."""
        near = [*self._routes.get((method, len(segments)), ()), *self._routes.get((method, _ANY), ())]
        matching = [route for route in near if route[0].fits(segments)]
        if any(pattern.query for pattern, _ in matching):
            present = parameters(query)
            asked = {(key, value) for key, values in present.items() for value in (None, *values)}
            matching = [route for route in matching if asked.issuperset(route[0].query)]
        ranks = [pattern.rank for pattern, _ in matching]
        return matching[ranks.index(min(ranks))][1] if ranks and ranks.count(min(ranks)) == 1 else None


@dataclass(frozen=True, slots=True)
class ModeledOperation:
    """One operation of a service."""

    name: str
    """The shape's name, without its namespace."""
    shape_id: str
    """The shape's absolute ID."""
    readonly: bool
    """True with ``@readonly``."""
    idempotent: bool
    """True with ``@idempotent``."""
    idempotency_token: IdempotencyToken | None
    """The input member with ``@idempotencyToken`` and its binding in this protocol, or None."""
    long_poll: bool
    """True with ``@longPoll``."""
    http_method: str | None
    """The method of ``@http``, or None."""
    uri_pattern: UriPattern | None
    """The URI pattern of ``@http``, or None."""
    host_prefix: str = ""
    """The prefix of the host from ``@endpoint``; empty if there is none or it has labels."""

    @property
    def resendable(self) -> bool:
        """Return True if any request of this operation may be sent again, whatever its method."""
        return self.readonly or self.idempotent

    def resendable_with(self, url: str, headers: Mapping[str, Any], body: object) -> bool:
        """Return True if this request of the operation may be sent again.

        :param url: the URL, or the path with the query.
        :param body: bytes or text; in anything else no token is found.
        """
        token = self.idempotency_token
        return self.resendable or (token is not None and token.present_in(url, headers, body))


def bound_operations(ast: Ast, service: str) -> list[str]:
    """Return the operations in the closure of a service: its own, and recursively those of its resources."""
    found: dict[str, None] = {}
    seen = {service}
    waiting = [service]
    while waiting:
        holder = waiting.pop(0)
        for reference in _operation_references(ast, holder):
            found[ast.follow(reference, "operation")] = None
        for reference in ast.references(holder, "resources"):
            resource = ast.follow(reference, "resource")
            if resource not in seen:
                seen.add(resource)
                waiting.append(resource)
    return list(found)


def _operation_references(ast: Ast, holder: str) -> Iterator[Node]:
    """Yield the references of a service or resource to its operations; only a resource has more than the first list."""
    yield from ast.references(holder, "operations")
    yield from ast.references(holder, "collectionOperations")
    for ancestor in ast.lineage(holder):
        for key in LIFECYCLE:
            reference = ast.shapes[ancestor].child(key)
            if reference is not None:
                yield reference


def read_operation(ast: Ast, shape_id: str, protocol: Protocol) -> ModeledOperation:
    traits = ast.traits(shape_id)
    for name in (READONLY, IDEMPOTENT, *LONG_POLL):
        if name in traits:
            traits[name].annotation()
    method, pattern = _read_http(traits[HTTP]) if HTTP in traits else (None, None)
    prefix = traits[ENDPOINT].needed("hostPrefix").string().lower() if ENDPOINT in traits else ""
    return ModeledOperation(
        name=shape_name(shape_id),
        shape_id=shape_id,
        readonly=READONLY in traits,
        idempotent=IDEMPOTENT in traits,
        idempotency_token=_read_token(ast, shape_id, protocol),
        long_poll=any(name in traits for name in LONG_POLL),
        http_method=method,
        uri_pattern=pattern,
        host_prefix="" if "{" in prefix else prefix,
    )


def _read_http(trait: Node) -> tuple[str, UriPattern]:
    expected = 'an object with "method" and "uri"'
    method, uri = trait.needed("method", expected), trait.needed("uri", expected)
    verb, text = method.string(), uri.string()
    try:
        return verb, UriPattern.parse(text)
    except ValueError as problem:
        raise uri.error(str(problem)) from None


def _read_token(ast: Ast, shape_id: str, protocol: Protocol) -> IdempotencyToken | None:
    reference = ast.shapes[shape_id].child("input")
    if reference is None or reference.target().startswith(PRELUDE):
        return None
    for member, traits in ast.members(ast.follow(reference, "structure")).items():
        if IDEMPOTENCY_TOKEN in traits:
            return bind_token(member, traits, protocol)
    return None


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
    """Return the errors of the model by code, which several can share: two namespaces, or ``@awsQueryError``."""
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


_TRANSIENT = RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, not_applied=True))
_THROTTLING = RetryAction.retry_indicated(RetryReason(ErrorKind.THROTTLING, not_applied=True))


def verdict_for(
    errors: Mapping[str, tuple[ModeledError, ...]], error_code: str | None, status: int | None
) -> RetryAction:
    """Return a model's verdict on an error code.

    Without a code there is no opinion. If several errors share a code, those whose ``@httpError`` is not the
    status are left out; if the rest disagree, there is no opinion.

    :param errors: by name or code, each with all errors that share it; for a loaded model use
        :meth:`.SmithyModel.verdict_for`.
    :param error_code: the code or shape name in the response, decorated or not, or None.
    :param status: the status of the response, or None.
    """
    if error_code is None:
        return NO_ACTION
    named = errors.get(bare_error_code(error_code), ())
    namesakes = tuple(error for error in named if error.http_status == status) or named
    opinions = {(error.retryable, error.throttling) for error in namesakes}
    if opinions == {(True, False)}:
        return _TRANSIENT
    if opinions == {(True, True)}:
        return _THROTTLING
    return NO_ACTION
