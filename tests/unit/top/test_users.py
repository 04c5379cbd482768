"""The mark of the user that a request is sent for, by which announced limits are told apart (contract 7.4)."""

from __future__ import annotations

import pytest
from requests.structures import CaseInsensitiveDict

from requests_smithy_retry.urls import KEYS, user_of

SIGNED = "AWS4-HMAC-SHA256 Credential={}/20260101/eu/x/aws4_request, SignedHeaders=host, Signature={}"
OAUTH = 'OAuth oauth_consumer_key="app", oauth_nonce="{}", oauth_token="{}", oauth_signature="{}"'
USERS: list[tuple[dict[str, str | bytes], dict[str, str | bytes], bool]] = [
    ({}, {"Accept": "text/html"}, True),
    ({}, {"Authorization": "Bearer a"}, False),
    ({"Authorization": "Bearer a"}, {"AUTHORIZATION": "Bearer a", "Accept": "*/*"}, True),
    ({"Authorization": "Bearer a"}, {"Authorization": b"Bearer a"}, True),
    ({"Authorization": "Bearer a"}, {"Authorization": "Bearer b"}, False),
    ({"Authorization": "Basic dTpw"}, {"Authorization": "Basic dTpx"}, False),
    ({"X-Api-Key": "a"}, {"Api-Key": "a"}, False),
    ({"Authorization": SIGNED.format("A", "1")}, {"Authorization": SIGNED.format("A", "2")}, True),
    ({"Authorization": SIGNED.format("A", "1")}, {"Authorization": SIGNED.format("B", "1")}, False),
    ({"Authorization": OAUTH.format(1, "t", 2)}, {"Authorization": OAUTH.format(3, "t", 4)}, True),
    ({"Authorization": OAUTH.format(1, "t", 2)}, {"Authorization": OAUTH.format(1, "u", 2)}, False),
    ({"Authorization": 'Digest username="a", nc=1'}, {"Authorization": 'Digest username="a", nc=2'}, True),
    ({"Authorization": 'Digest username="a", nc=1'}, {"Authorization": 'Digest username="b", nc=1'}, False),
    (
        {"Authorization": 'Signature keyId="k",signature="1"'},
        {"Authorization": 'Signature keyId="k",signature="2"'},
        True,
    ),
    ({"X-Api-Key": "ä\ud800"}, {"X-Api-Key": "ä"}, False),
]


@pytest.mark.parametrize(("one", "other", "expected"), USERS, ids=str)
def test_who_is_the_same_user(one: dict[str, str | bytes], other: dict[str, str | bytes], expected: bool) -> None:
    """Credentials tell users apart, without what is another one for each request of a user."""
    assert expected == (user_of(CaseInsensitiveDict(one)) == user_of(CaseInsensitiveDict(other)))


@pytest.mark.parametrize("name", sorted(KEYS))
def test_no_secret_is_in_a_mark(name: str) -> None:
    """It is a digest, and of no credentials it is empty."""
    assert b"" == user_of({})
    mark = user_of({name: "hunter2"})
    assert (32, False) == (len(mark), b"hunter2" in mark)
