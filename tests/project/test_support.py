"""The test helpers are tested too."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests.exceptions

from tests import conftest
from tests.support import Reply, ScriptedTransport, pool_timeout, prepare, reset_error, send

pytest_plugins = ["pytester"]


def test_a_transport_plays_its_script():
    """Statuses, replies, exceptions and functions are played in order; reading a cut reply raises as requests does."""
    cut = Reply(200, body=b"half", cut=True)
    transport = ScriptedTransport(script=[503, Reply(200, {"A": "b"}, b"text"), lambda _: 204, ValueError("no"), cut])
    answers = [send(transport) for _ in range(3)]
    assert [(503, b""), (200, b"text"), (204, b"")] == [(item.status_code, item.content) for item in answers]
    assert "b" == answers[1].headers["a"]
    with pytest.raises(ValueError, match="no"):
        send(transport)
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        _ = send(transport).content
    with pytest.raises(AssertionError, match="attempt 6 was not in the script"):
        send(transport)
    assert 5 == len(transport.sent)


def test_a_transport_draws_on_the_body():
    """A generator is read to its end by an attempt, and left alone by one that never wrote."""
    body = iter([b"a", b"b"])
    transport = ScriptedTransport(script=[pool_timeout(), reset_error()])
    request = prepare("POST", data=body)
    for _ in range(2):
        with pytest.raises(requests.exceptions.ConnectionError):
            transport.send(request)
    assert [None, b"ab"] == [item.body for item in transport.sent]


@pytest.mark.once
def test_only_a_test_without_the_mark_is_kept_from_sleeping(pytester):
    """A module that a test on virtual time imports first keeps the guard, and may sleep in a test on real time."""
    pytester.makeconftest(Path(conftest.__file__).read_text("utf-8"))
    pytester.makepyfile(late="from time import sleep")
    pytester.makepyfile("""
        import pytest

        def test_virtual():
            import late
            with pytest.raises(AssertionError, match="slept 0 s for real"):
                late.sleep(0)

        @pytest.mark.real_time
        def test_real():
            import late
            late.sleep(0)
    """)
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q").assert_outcomes(passed=2)
