"""A block of ``retry_options`` around a pool: what its threads see of it (contract 8.4, 10.4)."""

from __future__ import annotations

import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from requests_smithy_retry import retry_options
from requests_smithy_retry.testing import scripted
from tests.support import URL


def test_the_threads_of_a_pool_do_not_see_a_deadline() -> None:
    """A task sees it if it is given a copy of the block's context; another one is sent after the deadline, too."""
    adapter = scripted(200, 200)
    request = requests.Request("GET", URL).prepare()
    with ThreadPoolExecutor(1) as pool, retry_options(deadline=1, clock=adapter.clock):
        adapter.clock.advance(2)
        assert 200 == pool.submit(adapter.send, request).result().status_code
        bounded = pool.submit(contextvars.copy_context().run, adapter.send, request)
        with pytest.raises(requests.ConnectTimeout):
            bounded.result()
    assert 1 == len(adapter.sent)
