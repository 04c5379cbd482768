"""Other people's tools see every attempt (contract 11.2): responses, vcrpy, pytest-httpserver, toolbelt's adapters."""

from __future__ import annotations

import pytest
import requests
import responses
import vcr
from requests_toolbelt import MultipartEncoder
from responses import matchers

from requests_smithy_retry import RetryAdapter, StopReason, retry_history
from requests_smithy_retry.testing import FakeClock, FaultServer, Reply, retries_disabled
from tests.support import URL, session_with


def session(kind=RetryAdapter, **options):
    return session_with(kind(clock=FakeClock(), jitter="none", **options))


@responses.activate
def test_responses_sees_every_attempt():
    """A script of ``responses`` is played through, and its calls are the attempts."""
    responses.get(URL, status=503)
    responses.get(URL, body=requests.exceptions.ReadTimeout("late"))
    responses.get(URL, json={"a": 1}, match=[matchers.query_param_matcher({"b": "c"})])
    assert {"a": 1} == session().get(URL, params={"b": "c"}).json()
    assert 3 == len(responses.calls)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("stream", [False, True])
def test_vcrpy_records_and_replays_every_attempt(tmp_path, stream):
    """A cassette holds each attempt, and replays them without a server."""
    cassette = str(tmp_path / "cassette.yaml")
    with FaultServer([Reply(503, body=b"down"), Reply(429, body=b"slow"), Reply(200, body=b"well")]) as server:
        url = server.url
        with vcr.use_cassette(cassette, record_mode="once") as tape, session() as client:
            assert b"well" == client.get(url, stream=stream).content
        assert 3 == len(server.requests)
        assert [503, 429, 200] == [answer["status"]["code"] for answer in tape.responses]
    with vcr.use_cassette(cassette, record_mode="none") as tape, session() as client:
        response = client.get(url, stream=stream)
        assert (200, b"well", 3) == (response.status_code, response.content, tape.play_count)
        assert 3 == len(retry_history(response).attempts)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_under_vcrpy_a_post_counts_as_written(tmp_path):
    """A connection of another class tells nothing, and unknown counts as written (contract 4.2)."""
    with FaultServer([Reply(503), Reply(200)]) as server, vcr.use_cassette(str(tmp_path / "c.yaml")):
        response = session().post(server.url, data=b"pay")
    assert (503, StopReason.NOT_RESENDABLE) == (response.status_code, retry_history(response).stop_reason)


@pytest.fixture
def tape_of_a_502(tmp_path):
    """A cassette that has one answer."""
    cassette = str(tmp_path / "c.yaml")
    with FaultServer([Reply(502, body=b"down" * 40_000)]) as server:
        with vcr.use_cassette(cassette), requests.Session() as client:
            client.get(server.url)
        return server.url, cassette


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_tape_that_ends_says_so_itself(tape_of_a_502):
    """Its exception is that of the last attempt, and the history has the answer before it."""
    url, cassette = tape_of_a_502
    refused = pytest.raises(vcr.errors.CannotOverwriteExistingCassetteException)
    with vcr.use_cassette(cassette, record_mode="none"), session() as client, refused as caught:
        client.get(url)
    ends = [attempt.ending for attempt in retry_history(caught.value).attempts]
    assert ["502", "CannotOverwriteExistingCassetteException"] == ends


class Own(Exception):
    """An exception of the program."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("raised", [KeyboardInterrupt, Own, ZeroDivisionError])
def test_a_programs_own_exception_comes_through_beside_a_tape(tape_of_a_502, raised, monkeypatch):
    """Whatever else is raised within the second attempt is not hidden behind the first answer."""
    url, cassette = tape_of_a_502
    with vcr.use_cassette(cassette, record_mode="none"), session() as client:
        send, calls = requests.adapters.HTTPAdapter.send, []

        def sometimes(*args, **kwargs):
            calls.append(1)
            if len(calls) == 2:
                raise raised
            return send(*args, **kwargs)

        monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", sometimes)
        with pytest.raises(raised):
            client.get(url)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_tape_that_has_nothing_says_so_itself(tape_of_a_502):
    """The first attempt's exception is the tape's own; with retries off, nothing is asked of the tape a second time."""
    url, cassette = tape_of_a_502
    with vcr.use_cassette(cassette, record_mode="none") as tape, session() as client:
        with pytest.raises(vcr.errors.CannotOverwriteExistingCassetteException):
            client.get(url + "/other")
        with retries_disabled():
            assert (502, 1) == ((response := client.get(url)).status_code, len(retry_history(response).attempts))
        assert 1 == tape.play_count


def test_httpserver_sees_every_attempt(httpserver):
    """pytest-httpserver's ordered handlers are used up one per attempt."""
    for status in (503, 502, 200):
        httpserver.expect_ordered_request("/x").respond_with_data(str(status), status=status)
    assert "200" == session().get(httpserver.url_for("/x")).text
    httpserver.check_assertions()


def test_a_multipart_encoder_is_sent_once():
    """Toolbelt's streaming form can be read once: never sent again empty."""
    with FaultServer([Reply(503), Reply(200)]) as server, session() as client:
        form = MultipartEncoder({"a": "b"})
        response = client.put(server.url, data=form, headers={"Content-Type": form.content_type})
        assert (503, 1) == (response.status_code, len(server.requests))
        assert b"b" in server.requests[0].body
