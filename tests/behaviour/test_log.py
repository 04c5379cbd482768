"""The log: its messages, their levels, and the secrets that never appear in it (contract 12)."""

from __future__ import annotations

import logging
import re

import pytest
import requests
import responses

from requests_smithy_retry import RetryAdapter, mount, retry_history
from requests_smithy_retry.testing import FakeClock
from tests.support import prepare, scripted

URL = "https://user:hunter2@api.example.com/things?token=hunter2#hunter2"


def send(*statuses: int, method: str = "GET") -> requests.Response:
    session = requests.Session()
    session.mount("https://", RetryAdapter(clock=FakeClock(), quota=500))
    with responses.RequestsMock() as mock:
        for status in statuses:
            mock.add(method, re.compile("https://.*"), status=status, body="hunter2")
        return session.request(method, URL, headers={"X-Key": "hunter2"}, data=b"hunter2")


def levels(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.levelname for record in caplog.records if record.name == "requests_smithy_retry"]


def test_each_attempt_each_retry_and_giving_up_have_their_level(caplog: pytest.LogCaptureFixture) -> None:
    """DEBUG per attempt, INFO per retry, WARNING on giving up."""
    with caplog.at_level(logging.DEBUG, "requests_smithy_retry"):
        send(503, 503, 503)
    assert levels(caplog) == ["DEBUG", "INFO", "DEBUG", "INFO", "DEBUG", "WARNING"]
    assert caplog.records[-1].getMessage() == (
        "GET https://api.example.com:443/things: gave up after attempt 3: no attempts are left; last answer: 503"
    )


def test_the_lines_of_an_attempt_and_of_a_retry(caplog: pytest.LogCaptureFixture) -> None:
    """The lines name the method, the origin with its port, the path, the outcome and the duration."""
    with caplog.at_level(logging.DEBUG, "requests_smithy_retry"):
        send(503, 200)
    attempt, retry, _ = [re.sub(r"\d\.\d{3} s", "T", record.getMessage()) for record in caplog.records]
    assert attempt == "attempt 1 of GET https://api.example.com:443/things ended with 503 after T"
    assert retry == "retry 1 of GET https://api.example.com:443/things in T (backoff): attempt 1 ended with 503"


def test_an_answer_that_nobody_wants_retried_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A 404 ends an operation without anyone giving up."""
    with caplog.at_level(logging.DEBUG, "requests_smithy_retry"):
        response = send(404)
    assert levels(caplog) == ["DEBUG"]
    history = retry_history(response)
    assert history is not None
    assert history.sentence == "ended at attempt 1 with 404: no classifier asked for a retry"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.example.com/a?b=c", "https://api.example.com:443/a"),
        ("http://user:pass@host:8080/a#b", "http://host:8080/a"),
        ("http://[::1]:80/", "http://[::1]:80/"),
        ("http://[broken/", "invalid URL"),
        ("", "://"),
    ],
)
def test_a_url_is_written_without_its_secrets(url: str, expected: str, caplog: pytest.LogCaptureFixture) -> None:
    """Scheme, host, port and path are left; a URL that cannot be taken apart is not written at all."""
    request = prepare()
    request.url = url
    with caplog.at_level(logging.DEBUG, "requests_smithy_retry"):
        scripted(200, scope=lambda _: "any").send(request)
    assert expected == caplog.records[0].retry_url  # type: ignore[attr-defined]


def test_no_secret_reaches_a_log_record(caplog: pytest.LogCaptureFixture) -> None:
    """Userinfo, query, fragment, header values and bodies are in no message and in no extra."""
    with caplog.at_level(logging.DEBUG, "requests_smithy_retry"):
        response = send(503, 429, 500)
    written = [str(vars(record)) for record in caplog.records if record.name == "requests_smithy_retry"]
    assert len(written) == 6
    assert "hunter2" not in "".join(written)
    assert "hunter2" not in str(retry_history(response).to_dict())  # type: ignore[union-attr]


def test_extras_say_the_same_as_the_message(caplog: pytest.LogCaptureFixture) -> None:
    """The facts in the message of a record are its attributes, too."""
    with caplog.at_level(logging.INFO, "requests_smithy_retry"):
        send(503, 200)
    (record,) = [record for record in caplog.records if record.name == "requests_smithy_retry"]
    assert vars(record)["retry_status"] == 503
    assert vars(record)["retry_attempt"] == 1
    assert vars(record)["retry_method"] == "GET"
    assert vars(record)["retry_url"] == "https://api.example.com:443/things"
    assert vars(record)["retry_delay_source"] == "backoff"


def test_an_exception_carries_the_story_as_a_note() -> None:
    """From Python 3.11 on a traceback ends with the reason why there was no further attempt."""
    session = mount(requests.Session(), max_attempts=1)
    with pytest.raises(requests.exceptions.ConnectionError) as caught:
        session.get("http://127.0.0.1:9/")
    history = retry_history(caught.value)
    assert history is not None
    assert getattr(caught.value, "__notes__", [history.sentence]) == [history.sentence]


def test_a_level_that_is_changed_is_noticed_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """A cached level is dropped when a level is changed, on the logger or above it."""
    send(200)
    send(200)
    logger = logging.getLogger("requests_smithy_retry")
    for level, expected in ((logging.DEBUG, 1), (logging.INFO, 1), (logging.DEBUG, 2)):
        logger.setLevel(level)
        try:
            send(200)
        finally:
            logger.setLevel(logging.NOTSET)
        assert expected == len(levels(caplog))
    logging.disable(logging.DEBUG)
    try:
        logger.setLevel(logging.DEBUG)
        send(200)
    finally:
        logger.setLevel(logging.NOTSET)
        logging.disable(logging.NOTSET)
    assert len(levels(caplog)) == 2
