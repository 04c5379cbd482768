"""The policies that real clients have in the outages: each peer as its users set it up, and ours in four ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter

from .command import session_of

Get = Any
"""A function that makes one operation of a URL and returns a response or raises."""


def _mounted(make: Callable[..., HTTPAdapter]) -> Callable[[int], Callable[[], Get]]:
    """A client: its threads share an adapter, and each call makes one thread's `get`."""

    def client(pool: int) -> Callable[[], Get]:
        adapter = make(pool_connections=1, pool_maxsize=pool)
        return lambda: session_of(adapter).get

    return client


def _urllib3(**pool: Any) -> HTTPAdapter:
    return HTTPAdapter(max_retries=Retry(2, backoff_factor=0.1, status_forcelist=[429, 503]), **pool)


def _decorated(decorator: Callable[[], Any]) -> Callable[[int], Callable[[], Get]]:
    """A client of a plain adapter, whose threads each retry a function that raises for a status."""

    def client(pool: int) -> Callable[[], Get]:
        thread = _mounted(HTTPAdapter)(pool)

        def wrapped() -> Get:
            get = thread()

            def fetch(url: str, timeout: float) -> requests.Response:
                response: requests.Response = get(url, timeout=timeout)
                response.raise_for_status()
                return response

            return decorator()(fetch)

        return wrapped

    return client


def _tenacity() -> Any:
    from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_random_exponential

    return retry(
        stop=stop_after_delay(30),
        wait=wait_random_exponential(max=60),
        retry=retry_if_exception_type(requests.RequestException),
        reraise=True,
    )


def _stamina() -> Any:
    import stamina

    return stamina.retry(on=requests.RequestException)


POLICIES: dict[str, Callable[[int], Callable[[], Get]]] = {
    "no retry": _mounted(HTTPAdapter),
    "urllib3 Retry": _mounted(_urllib3),
    "tenacity": _decorated(_tenacity),
    "stamina": _decorated(_stamina),
    "AWS 2.1": _mounted(lambda **pool: RetryAdapter(retry_spec="2.1", **pool)),
    "default": _mounted(RetryAdapter),
    "patient": _mounted(lambda **pool: RetryAdapter(patience=30, **pool)),
}
"""By name, its client."""
