"""The policies that real clients have in the outages. To add one, give it a line in `POLICIES`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

Get = Any
"""What makes one operation of a URL and returns a response or raises."""


def _mounted(make: Callable[..., HTTPAdapter]) -> Callable[[int], Callable[[], Get]]:
    """A client: its threads share an adapter, and each call makes one thread's `get`."""

    def client(pool: int) -> Callable[[], Get]:
        adapter = make(pool_connections=1, pool_maxsize=pool)

        def thread() -> Get:
            session = requests.Session()
            session.trust_env = False
            session.mount("http://", adapter)
            return session.get

        return thread

    return client


def _urllib3(**pool: Any) -> HTTPAdapter:
    return HTTPAdapter(max_retries=Retry(2, backoff_factor=0.1, status_forcelist=[429, 503]), **pool)


def _tenacity(pool: int) -> Callable[[], Get]:
    from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

    thread = _mounted(HTTPAdapter)(pool)

    def wrapped() -> Get:
        get = thread()

        @retry(
            stop=stop_after_attempt(3),
            wait=wait_random_exponential(multiplier=0.1, max=20),
            retry=retry_if_exception_type(requests.RequestException),
            reraise=True,
        )
        def fetch(url: str, timeout: float) -> requests.Response:
            response = get(url, timeout=timeout)
            response.raise_for_status()
            return response

        return fetch

    return wrapped


POLICIES: dict[str, tuple[str, Callable[[int], Callable[[], Get]]]] = {
    "no retry": ("HTTPAdapter()", _mounted(HTTPAdapter)),
    "urllib3 Retry": ("Retry(2, backoff_factor=0.1, status_forcelist=[429, 503])", _mounted(_urllib3)),
    "tenacity": ("stop_after_attempt(3), wait_random_exponential(multiplier=0.1, max=20)", _tenacity),
    "standard": ("RetryAdapter()", _mounted(RetryAdapter)),
    "adaptive": ('RetryAdapter(mode="adaptive")', _mounted(lambda **pool: RetryAdapter(mode="adaptive", **pool))),
    "payoff": ('RetryAdapter(quota="payoff")', _mounted(lambda **pool: RetryAdapter(quota="payoff", **pool))),
}
"""By name: how it is made, as one would write it, and its client. All make three attempts at most."""
