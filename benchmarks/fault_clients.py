"""The clients of the fault table, each set up as its own documentation shows, with three attempts where it retries.

A client is made for one server. It is called with a method, a path and what to upload, and returns status and body of
what it got, or raises. Read time-out 1 s, connect time-out 2 s for all. The decorators (tenacity, stamina, backoff)
wrap a function that calls `session.request` and `raise_for_status`, are handed the body as an argument, and
retry what has no response, 429 and 5xx. botocore is the real thing: S3's GetObject and PutObject, Lambda's Invoke for
POST, its own HTTP session, standard mode. To compare another client, add a line to `CLIENTS`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter

from .command import session_of

Call = Any
"""`call(method, path, data) -> (status, body)`; raises what the client raises."""

CONNECT, READ = 2.0, 1.0
FORCELIST = [429, 500, 502, 503, 504]


Send = Callable[[str, str, Any], requests.Response]


def _sender(adapter: HTTPAdapter) -> Send:
    session = session_of(adapter)

    def send(method: str, url: str, data: Any) -> requests.Response:
        return session.request(method, url, data=data, timeout=(CONNECT, READ))

    return send


def _call(send: Send, origin: str) -> Call:
    def call(method: str, path: str, data: Any) -> tuple[int, bytes]:
        response = send(method, origin + path, data)
        return response.status_code, response.content

    return call


def _mounted(make: Callable[[], HTTPAdapter]) -> Callable[[str], Call]:
    return lambda origin: _call(_sender(make()), origin)


def _wrapped(decorate: Callable[[], Any]) -> Callable[[str], Call]:
    def client(origin: str) -> Call:
        send = _sender(HTTPAdapter())

        def fetch(method: str, url: str, data: Any) -> requests.Response:
            response = send(method, url, data)
            response.raise_for_status()
            return response

        return _call(decorate()(fetch), origin)

    return client


def _should_retry(error: BaseException) -> bool:
    """No response, throttled, or the server's fault."""
    response = getattr(error, "response", None)
    return isinstance(error, requests.RequestException) and (
        response is None or response.status_code == 429 or response.status_code >= 500
    )


def _tenacity() -> Any:
    from tenacity import retry, retry_if_exception, stop_after_attempt, wait_random_exponential

    return retry(
        stop=stop_after_attempt(3),
        wait=wait_random_exponential(multiplier=1, max=60),
        retry=retry_if_exception(_should_retry),
        reraise=True,
    )


def _stamina() -> Any:
    import stamina

    return stamina.retry(on=_should_retry, attempts=3)


def _backoff() -> Any:
    import backoff

    return backoff.on_exception(
        backoff.expo, requests.RequestException, max_tries=3, giveup=lambda error: not _should_retry(error)
    )


_botocore_lock = threading.Lock()
_botocore_sessions: list[Any] = []


def _botocore(origin: str) -> Call:
    import botocore.session
    from botocore import UNSIGNED
    from botocore.config import Config

    settings = Config(
        signature_version=UNSIGNED,
        retries={"mode": "standard", "total_max_attempts": 3},
        connect_timeout=CONNECT,
        read_timeout=READ,
        s3={"addressing_style": "path"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    with _botocore_lock:  # making a client is not safe for threads; using one is
        if not _botocore_sessions:
            _botocore_sessions.append(botocore.session.Session())
        s3, functions = (
            _botocore_sessions[0].create_client(name, region_name="us-east-1", endpoint_url=origin, config=settings)
            for name in ("s3", "lambda")
        )

    def call(method: str, path: str, data: Any) -> tuple[int, bytes]:
        if method == "GET":
            told = s3.get_object(Bucket="bucket", Key="key")
        elif method == "PUT":
            told = s3.put_object(Bucket="bucket", Key="key", Body=data)
        else:
            told = functions.invoke(FunctionName="name", Payload=data)
        body = told.get("Body") or told.get("Payload")
        return told["ResponseMetadata"]["HTTPStatusCode"], b"" if body is None else body.read()

    return call


RETRY = {"total": 2, "backoff_factor": 0.1, "status_forcelist": FORCELIST}
CLIENTS: dict[str, Callable[[str], Call]] = {
    "requests": _mounted(HTTPAdapter),
    "urllib3": _mounted(lambda: HTTPAdapter(max_retries=Retry(**RETRY))),
    "urllib3, any method": _mounted(lambda: HTTPAdapter(max_retries=Retry(**RETRY, allowed_methods=None))),
    "tenacity": _wrapped(_tenacity),
    "stamina": _wrapped(_stamina),
    "backoff": _wrapped(_backoff),
    "botocore": _botocore,
    "ours": _mounted(RetryAdapter),
    "ours, time limits": _mounted(lambda: RetryAdapter(operation_timeout=6, operation_attempt_timeout=2)),
}
"""By name, what makes the client for a server."""
