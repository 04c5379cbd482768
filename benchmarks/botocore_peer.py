"""botocore's standard retry handler, fed with a success after each `session.get`.

Counted: what botocore's own retry code does on a first-try success, called where its endpoint and client
call it: `Endpoint._needs_retry` (which emits `needs-retry.<service>.<operation>` to
`RetryHandler.needs_retry`: retry context, checkers, quota, response metadata) and the `after-call` event
(quota released). Emitter, endpoint and handlers are botocore's own, wired by its own
`register_retry_handler`.

Not counted: what botocore does besides: serializing, signing, parsing, its other events (`request-created`,
`before-send`, `response-received`), the retry headers and the invocation id. The HTTP call under it is the
same `session.get` as for everybody else, not botocore's own HTTP session.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from botocore.endpoint import Endpoint
from botocore.hooks import HierarchicalEmitter
from botocore.model import ServiceId
from botocore.retries.standard import register_retry_handler

if TYPE_CHECKING:
    from collections.abc import Callable

    import requests


def standard_handler(session: requests.Session) -> Callable[[str], requests.Response]:
    """A `get` that tells botocore's standard retry handler about each response."""
    emitter = HierarchicalEmitter()
    service = SimpleNamespace(service_id=ServiceId("demo"), service_name="demo")
    operation = SimpleNamespace(name="GetThing", service_model=service, error_shapes=[])
    register_retry_handler(SimpleNamespace(meta=SimpleNamespace(service_model=service, events=emitter)))
    needs_retry = Endpoint("http://127.0.0.1", "demo", emitter, http_session=session)._needs_retry
    send, emit = session.get, emitter.emit

    def get(url: str) -> requests.Response:
        request = {"context": {"retries": {"attempt": 1}}}
        response = send(url)
        parsed = {"ResponseMetadata": {"HTTPStatusCode": response.status_code}}
        if needs_retry(1, operation, request, (response, parsed)):
            raise AssertionError("botocore wants to retry a 200")
        emit(
            "after-call.demo.GetThing",
            http_response=response,
            parsed=parsed,
            model=operation,
            context=request["context"],
        )
        return response

    return get
