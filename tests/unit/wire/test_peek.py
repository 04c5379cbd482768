"""Looking at the beginning of a body (contract 13): what is found, and that nothing is lost by it."""

from __future__ import annotations

import gzip

import pytest
import requests

from requests_smithy_retry.testing import FaultServer, Reply
from requests_smithy_retry.wire.response import PEEK_BYTES, peek

from .support import session

SHORT, LONG = b"short", b"a line of a long body\n" * 20_000


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("coding", [None, "gzip"])
@pytest.mark.parametrize("body", [SHORT, LONG], ids=["short", "long"])
def test_nothing_is_lost(framing: str, coding: str | None, body: bytes) -> None:
    """A look shows the beginning, or that all is there; reading gives the body as if there had been none."""
    sent = gzip.compress(body) if coding else body
    headers = {} if coding is None else {"Content-Encoding": coding}
    with FaultServer([Reply(400, headers, sent, framing=framing)]) as server, session() as made:
        response = made.get(server.url, stream=True)
        peeked = peek(response)
        assert peeked is not None
        assert peeked.whole is (body is SHORT)
        assert body.startswith(peeked.prefix)
        assert len(peeked.prefix) == min(len(body), PEEK_BYTES)
        assert response.content == body


def test_what_is_not_ours_is_not_looked_at() -> None:
    """A mock has no socket below it."""
    assert peek(requests.Response()) is None
