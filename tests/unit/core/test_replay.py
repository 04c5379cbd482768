"""What is judged of bodies (contract 5), by hand."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from requests_smithy_retry.core.replay import body_of
from tests.support import Chunks, prepare


def judged(body: Any) -> tuple[Any, Any]:
    """What is judged of a body that requests has not looked at, and the request to send."""
    request = prepare("PUT", data=b"-")
    request.body = body
    known = body_of(request)
    assert known is not None
    return known, known.request_to_send(request)


@pytest.mark.parametrize("make", [lambda: (part for part in [b"-"]), lambda: iter([b"-"]), lambda: Chunks(b"-")])
def test_an_iterable_can_be_sent_again_until_it_is_drawn_on(make):
    """To ask it for an iterator is nothing yet; a head that was written does not count either."""
    known, request = judged(make())
    parts = iter(request.body)
    assert known.obstacle() is None
    assert b"-" == next(parts)
    assert "some of it was read" == known.obstacle()


def test_a_stream_can_be_sent_again_until_it_is_read():
    """What cannot go back is whole as long as nobody has read from it."""
    known, request = judged(SimpleNamespace(read=io.BytesIO(b"-").read, tell=int, seek=None))
    assert known.obstacle() is None
    assert known.rewind() is None
    assert b"-" == request.body.read(1)
    assert "some of it was read" == known.obstacle()


@pytest.mark.parametrize("body", [object(), 5])
def test_what_is_no_body_is_sent_as_it_is_and_once(body):
    """An unknown object is handed to requests as it is; nothing is known of what became of it."""
    known, request = judged(body)
    assert request.body is body
    assert "some of it was read" == known.obstacle()


@pytest.mark.parametrize(
    ("body", "is_known"), [(b"", False), ("", False), (type("Text", (str,), {})(), False), (bytearray(b"-"), True)]
)
def test_what_never_changes_needs_no_care(body, is_known):
    """Bytes and text, of classes of their own too, are as they were."""
    request = prepare("PUT", data=b"-")
    request.body = body
    assert is_known is (body_of(request) is not None)


@pytest.mark.parametrize(
    ("body", "sent_as_it_is"),
    [(bytearray(b"-"), True), (memoryview(b"-"), True), (bytearray(b"--"), False), ([b"-"], False)],
)
def test_a_buffer_of_the_declared_length_is_sent_as_it_is(body, sent_as_it_is):
    """Only one of another length has to be cut; a list may grow while it is sent."""
    known, request = judged(body)
    assert sent_as_it_is is (request.body is body)
    assert known.bytes_read() is None


def test_of_a_file_that_was_closed_nothing_is_known():
    """It cannot go back, and how much of it was read is not known any more."""
    body = io.BytesIO(b"-")
    known, _ = judged(body)
    body.close()
    assert ("it cannot go back to where it began", None) == (known.obstacle(), known.bytes_read())


def test_a_list_of_other_things_is_one_shot():
    """What is in it may be used up with the first attempt."""
    known, _ = judged([iter([b"-"])])
    assert "OneShotBody" == type(known).__name__
