"""A signature for each attempt (contract 2.10), so that none is sent twice.

The auth that a program gives to :func:`resign` signs a copy of the unsigned request. Without it, the history says that
a server refused a repeated signature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from requests import PreparedRequest, Response
from requests.auth import AuthBase
from requests.exceptions import UnrewindableBodyError
from requests.hooks import default_hooks
from requests.structures import CaseInsensitiveDict
from requests.utils import rewind_body, super_len

from ..checks import BadValue, copy_of, header_text, number
from ..classifiers.actions import NO_ACTION, NoActionIndicated, RetryAction, RetryForbidden
from ..classifiers.outcome import Outcome
from ..clock import SYSTEM_CLOCK, Clock
from ..config.retry_config import RetryConfig
from ..core.port import Feature
from ..core.replay import SIMPLE_BODIES, body_of
from ..errors import RetryConfigError, StopReason
from ..interruptions import ask_program
from ..urls import scope_of
from ..wire.upload import declared_length

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.port import Send

    Headers = CaseInsensitiveDict[Any]

NAME = "resign"
ANSWERED = "resign: answered"
LENGTH, CREDENTIALS = "Content-Length", "Authorization"
OF_THE_BODY = frozenset({"content-length", "content-type", "transfer-encoding"})
"""Headers that a redirect removes with the body."""
OF_CONNECTIONS = frozenset(
    {"requests_credssp", "requests_gssapi", "requests_kerberos", "requests_negotiate_sspi", "requests_ntlm"}
)
"""Packages whose auth objects authenticate a connection, over several requests."""
STALE = re.compile(r'(?i)\bdigest\b.*\bstale\s*=\s*"?true\b')
"""A challenge to the right credentials with an old nonce (RFC 7616, 3.3)."""
SIGNED_NAME = re.compile(r"(?i)(?:^|[-_])(?:dpop|hmac|sig|sign|signature)(?:[-_]|$)")
"""The name of a header or a parameter that is a signature: DPoP, X-Amz-Signature, CB-ACCESS-SIGN."""
SIGNED_VALUE = re.compile(r"(?i)(?:digest|hawk|mac|signature|sharedkey|aws4-\S+|\S*hmac\S*)\s|oauth\s.*\boauth_nonce=")
"""An ``Authorization`` that is good for one request, or for a while."""
REFUSED = "the server refused the repeated signature"
REFUSALS = frozenset({400, 401, 403})
BLAMED = re.compile(rb"(?i)dpop|expired|jti|nonce|proof|recvwindow|replay|signature|skew|timestamp")
"""The words of a 400 or 403 that refuses a signature."""


def resign(auth: Any, *, valid_for: float | None = None) -> Resign:
    """Return an auth that signs each retry again.

    Give it to a session: ``session.auth = resign(OAuth1(...))``. Without a :class:`.RetryAdapter`, it does what
    ``auth`` does.

    :param auth: an auth object of ``requests``, or a pair of user and password.
    :param valid_for: seconds after which a signature is too old for a first attempt, as after a wait for a rate limit;
        None: a first attempt keeps the signature with which the program sent it.
    :raises RetryConfigError: for anything else, and for an auth that authenticates a connection, such as NTLM.
    """
    return Resign(auth, valid_for)


class Resign(AuthBase):
    """The auth that :func:`resign` returns. It can be pickled if its ``auth`` can."""

    def __init__(self, auth: Any, valid_for: float | None = None) -> None:
        is_pair = isinstance(auth, tuple) and len(auth) == 2
        if isinstance(auth, type) or not (callable(auth) or is_pair):
            # The value is not shown: it may be a secret.
            allowed = "an auth object of requests, or a pair of user and password, is allowed"
            raise RetryConfigError("auth", type(auth), "resign", allowed)
        if any(kind.__module__.partition(".")[0] in OF_CONNECTIONS for kind in type(auth).__mro__):
            allowed = "it authenticates a connection, not a request: give it to the session as it is"
            raise RetryConfigError("auth", type(auth), "resign", allowed)
        try:
            self.valid_for: float | None = number(above=0, none=True)(valid_for)
        except BadValue as error:
            raise RetryConfigError("valid_for", valid_for, "resign", str(error)) from None
        self.auth: Any = auth

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Sign a request, and keep the unsigned one with it."""
        unsigned = picture_of(request)
        request.prepare_auth(self.auth)
        signature = Signature(self, unsigned, picture_of(request), SYSTEM_CLOCK.now())
        request.register_hook("response", signature)
        return request


def no_signature(response: Response, **_: Any) -> None:
    """Do nothing, as a hook: it takes the place of a signature in a pickle, which holds no secret."""


@dataclass(eq=False, repr=False)
class Signature:
    """A signed request and what it was before, kept among its hooks, which copies and redirects share."""

    auth: Resign
    unsigned: PreparedRequest
    signed: PreparedRequest
    at: float
    """The moment of the signature, on the machine's clock."""
    is_sent: bool = False

    def __call__(self, response: Response, **_: Any) -> None:
        """Do nothing, as a hook."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Signature:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return partial, (no_signature,)


@dataclass(eq=False, repr=False)
class Signing:
    """The signatures of one call."""

    signature: Signature
    request: PreparedRequest
    """The caller's."""
    url: str
    """The URL to sign."""
    sent: PreparedRequest
    """The request as it was signed last."""
    is_of_another: bool
    """The signature is that of another request, as after a redirect."""
    at: float | None = None
    """The moment of the last signature, on the adapter's clock; None: it was before the call."""
    asked: Headers = field(default_factory=CaseInsensitiveDict)
    """The changes before the call, by a redirect or the auth's own answer; the auth's headers replace them."""
    kept: Headers = field(default_factory=CaseInsensitiveDict)
    """The changes of the program, which stay."""
    hooks: tuple[Any, ...] = ()
    """The auth's own, of the last signature."""


class Resigning(Feature):
    """The seam: an attempt that needs a new signature gets one after all waits."""

    def around(self, send: Send, call: Call) -> Response:
        before = call.sent if call.number else None
        signing = signing_of(call)
        if signing is None:
            response = send(call)
            if before is not None and response.status_code in REFUSALS:
                look_for_repetition(call, response, before)
            return response
        if is_due(call, signing):
            sign(call, signing)
        response = send(call)
        response.request = call.request
        return answered(send, call, signing, response)


def signing_of(call: Call) -> Signing | None:
    """Return the signatures of a call; None: it has none, or may not be signed again."""
    hooks = getattr(call.request, "hooks", None)
    registered = hooks.get("response") if hooks else None
    if not registered or not isinstance(registered, list):  # a program may have set a function in its place
        return None
    known: Signing | None = call.data.get(NAME)
    if known is not None and known.request is call.request:
        return known
    signature = next((hook for hook in reversed(registered) if isinstance(hook, Signature)), None)
    if signature is None:
        return None
    made = call.data[NAME] = begin(signature, call.request, call.facts.to_send)
    signature.is_sent = True
    return made


def begin(signature: Signature, request: PreparedRequest, to_send: PreparedRequest) -> Signing | None:
    """Return the signatures of a call that begins; None: requests removed or replaced the credentials."""
    unsigned, signed = signature.unsigned, signature.signed
    url = url_to_sign(str(unsigned.url), str(signed.url), str(request.url))
    changes = changes_of(signed.headers, to_send.headers)
    is_off = is_taken_off(unsigned, signed, request, changes)
    if url is None or (signature.is_sent and (is_off or is_of_other_kind(signed.headers, to_send.headers))):
        return None
    is_of_another = signature.is_sent and (signed.url, signed.method) != (request.url, request.method)
    made = Signing(signature, request, url, picture_of(to_send), is_of_another)
    (made.asked if signature.is_sent else made.kept).update(changes)
    return made


def is_due(call: Call, signing: Signing) -> bool:
    """Return True if an attempt needs a new signature."""
    if call.number or (signing.is_of_another and signing.at is None):
        return True
    valid_for, now = signing.signature.auth.valid_for, call.adapter.clock.now()
    return valid_for is not None and max(now - call.began, SYSTEM_CLOCK.now() - signing.signature.at) > valid_for


def sign(call: Call, signing: Signing) -> None:
    """Sign the request that is sent next, with the program's changes."""
    facts, signature = call.facts, signing.signature
    signing.kept.update(changes_of(signing.sent.headers, facts.to_send.headers))
    if call.number:
        facts.rewind()
    call.is_sent = False  # what the auth raises is not this attempt's failure
    request = picture_of(signature.unsigned)
    request.method, request.url = call.request.method, signing.url
    apply(request.headers, signing.asked)
    apply(request.headers, signing.kept)
    request.body = before = body_to_sign(signature, call.request.body)
    length = request.headers.get(LENGTH)
    ask_program(request.prepare_auth, signature.auth.auth)
    signing.hooks = tuple(request.hooks["response"])
    apply(request.headers, signing.kept, but=LENGTH)
    if request.body is before:
        apply(request.headers, {LENGTH: length})
    if request.body is call.request.body:
        if facts.body is not None:
            facts.body.rewind()  # the auth may have read it
        request.body = facts.to_send.body
        facts.to_send = request
    else:
        facts.body = None if request.body.__class__ in SIMPLE_BODIES else body_of(request)
        facts.to_send = request if facts.body is None else facts.body.request_to_send(request)
    signing.sent, signing.at = picture_of(facts.to_send), call.adapter.clock.now()


def answered(send: Send, call: Call, signing: Signing, response: Response) -> Response:
    """Answer the challenge to a signature that was renewed with an old nonce, once.

    The auth's own hooks, which requests calls, answer the challenge to a first signature.
    """
    is_stale = response.status_code == 401 and STALE.search(response.headers.get("WWW-Authenticate", "")) is not None
    if not is_stale or not signing.hooks or ANSWERED in call.data or call.facts.obstacle() is not None:
        return response
    call.data[ANSWERED] = True
    if not call.goes_anew(partial(answer_to, call, signing), NAME):
        return response
    signing.sent = picture_of(call.facts.to_send)
    response = send(call)
    response.request = call.request
    return response


class Asked(Exception):
    """Stands in for an adapter: it is raised with the request that a hook of an auth would send."""

    def __init__(self, request: PreparedRequest) -> None:
        super().__init__()
        self.request = request

    @classmethod
    def send(cls, request: PreparedRequest, **_: Any) -> Response:
        raise cls(request)


def answer_to(call: Call, signing: Signing, challenge: Response) -> Mapping[str, str] | None:
    """Return the headers by which the hooks of an auth answer a challenge; None if they do not."""
    own, request = (challenge.connection, challenge.request), call.sent
    try:
        challenge.connection, challenge.request = Asked, request  # type: ignore[assignment]
        for hook in signing.hooks:
            hook(challenge, stream=call.stream, timeout=call.timeout, **call.how)
    except Asked as asked:
        changes = changes_of(request.headers, asked.request.headers)
        return {name: value for name, value in changes.items() if value is not None} or None
    finally:
        challenge.connection, challenge.request = own
    return None


def picture_of(request: PreparedRequest) -> PreparedRequest:
    """Return a copy of a request with hooks of its own."""
    made = copy_of(request)
    made.hooks = default_hooks()
    return made


def changes_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> Headers:
    """Return the headers that changed; None for a removed one."""
    old, new = CaseInsensitiveDict(before), CaseInsensitiveDict(after)
    return CaseInsensitiveDict({name: new.get(name) for name in (*old, *new) if old.get(name) != new.get(name)})


def apply(headers: Headers, changes: Mapping[str, Any], but: str = "") -> None:
    """Apply changes to headers, except to one."""
    for name, value in changes.items():
        if name.lower() == but.lower():
            continue
        if value is None:
            headers.pop(name, None)
        else:
            headers[name] = value


def is_taken_off(
    unsigned: PreparedRequest, signed: PreparedRequest, request: PreparedRequest, changes: Headers
) -> bool:
    """Return True if a copy of a signed request has lost the signature: a header of it, or the body that has it."""
    own = changes_of(unsigned.headers, signed.headers)
    are_gone = [name for name in own if name.lower() not in OF_THE_BODY and changes.get(name, own[name]) is None]
    return any(own[name] is not None for name in are_gone) or (
        request.body is None and signed.body is not unsigned.body
    )


def is_of_other_kind(before: Headers, now: Headers) -> bool:
    """Return True if the credentials are not the auth's, but those of a ``.netrc``, for instance."""
    old, new = before.get(CREDENTIALS), now.get(CREDENTIALS)
    return None not in (old, new) and str(old).partition(" ")[0] != str(new).partition(" ")[0]


def url_to_sign(unsigned: str, signed: str, now: str) -> str | None:
    """Return a URL without what the auth added to it; None: it is another service's, or that is unknown.

    >>> url_to_sign("http://x/a?b=1", "http://x/a?b=1&sig=2", "http://x/c?sig=2&d=3")
    'http://x/c?d=3'
    """
    if now == signed:
        return unsigned
    if scope_of(now) != scope_of(signed):
        return None
    if signed == unsigned:
        return now
    (path, _, old), (other, _, new) = unsigned.partition("?"), signed.partition("?")
    added, was_there = new.split("&"), [part for part in old.split("&") if part]
    if path != other or not set(was_there) <= set(added):
        return None
    place, _, query = now.partition("?")
    kept = [part for part in query.split("&") if part not in added or part in was_there]
    return f"{place}?{'&'.join(kept)}" if any(kept) else place


def body_to_sign(signature: Signature, now: Any) -> Any:
    """Return the body as it was before it was signed, if possible, given that of the request that is sent."""
    unsigned, signed = signature.unsigned, signature.signed
    if now is not signed.body:
        return now  # the program changed it, or a redirect took it away
    body = unsigned.body
    if body is now or body.__class__ in SIMPLE_BODIES:
        return body
    try:
        rewind_body(unsigned)
        is_the_same = super_len(body) == declared_length(unsigned.headers)
    except (UnrewindableBodyError, ValueError):
        return now  # what the auth read of it
    return body if is_the_same else now


class RepeatedSignature:
    """Says why the server refused one request. A retry that another classifier asks for stands."""

    name = "RepeatedSignature"

    def __init__(self, response: Response) -> None:
        self.response = response

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        is_it = outcome.response is self.response and isinstance(previous, NoActionIndicated)
        if is_it and (outcome.status == 401 or BLAMED.search(outcome.read_prefix)):
            return RetryForbidden(REFUSED, StopReason.NOT_RETRYABLE)
        return NO_ACTION


def look_for_repetition(call: Call, response: Response, before: PreparedRequest) -> None:
    """Note that a refused request had the signature of the attempt before."""
    signature = signature_in(call.sent)
    if signature and signature == signature_in(before):
        given = call.options.classifiers
        call.options = replace(call.options, classifiers=type(given)((*given, RepeatedSignature(response))))


def signature_in(request: PreparedRequest) -> list[tuple[str, str]]:
    """Return the headers and parameters of a request that are a signature."""
    query = str(request.url).partition("?")[2]
    fields = [(name.lower(), header_text(value)) for name, value in request.headers.items()]
    pairs = [(name, value) for name, _, value in (part.partition("=") for part in query.split("&"))]
    credentials = [(name, value) for name, value in fields if name == CREDENTIALS.lower() and SIGNED_VALUE.match(value)]
    return credentials + [(name, value) for name, value in (*fields, *pairs) if SIGNED_NAME.search(name)]


def feature(config: RetryConfig, clock: Clock) -> Resigning:
    return Resigning()
