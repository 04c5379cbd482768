"""The log: its messages, their levels, and the secrets that never appear in it (contract 12)."""

from __future__ import annotations

import logging
import re

import pytest
import requests

from requests_smithy_retry import mount, retry_history
from tests.support import prepare, scripted, send

THINGS = "GET https://api.example.com:443/things"
LOGGER = "requests_smithy_retry"


@pytest.fixture(autouse=True)
def _debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)


def ended(attempt: int, status: int) -> tuple[str, str]:
    return "DEBUG", f"attempt {attempt} of {THINGS} ended with {status} after T"


def retried(number: int) -> tuple[str, str]:
    return "INFO", f"retry {number} of {THINGS} in T (backoff): attempt {number} ended with 503"


UNTIL = "Until https://api.example.com answers well again, operations that give up are logged at INFO"
GAVE_UP = "WARNING", f"{THINGS}: gave up after attempt 3: no attempts are left; last answer: 503. {UNTIL}"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ([404], [ended(1, 404)]),
        ([503, 200], [ended(1, 503), retried(1), ended(2, 200)]),
        ([503] * 3, [ended(1, 503), retried(1), ended(2, 503), retried(2), ended(3, 503), GAVE_UP]),
    ],
    ids=["final", "mended", "given up"],
)
def test_each_attempt_each_retry_and_giving_up_have_their_level(
    script: list[int], expected: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    """DEBUG per attempt, INFO per retry, WARNING on giving up; each names method, origin, path and what happened."""
    send(scripted(*script))
    told = [(record.levelname, re.sub(r"\d\.\d{3} s", "T", record.getMessage())) for record in caplog.records]
    assert expected == told


def test_extras_say_the_same_as_the_message(caplog: pytest.LogCaptureFixture) -> None:
    """The facts in the message of a record are its attributes, too."""
    send(scripted(503, 200))
    facts = [
        vars(caplog.records[1])[f"retry_{name}"] for name in ("status", "attempt", "method", "url", "delay_source")
    ]
    assert [503, 1, "GET", "https://api.example.com:443/things", "backoff"] == facts


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
    scripted(200, scope=lambda _: "any").send(request)
    assert expected == vars(caplog.records[0])["retry_url"]


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
    logger = logging.getLogger(LOGGER)
    for level, expected in ((logging.NOTSET, 0), (logging.DEBUG, 1), (logging.INFO, 1), (logging.DEBUG, 2)):
        logger.setLevel(level)
        send(scripted(200))
        assert expected == len(caplog.records)
    logging.disable(logging.DEBUG)
    try:
        send(scripted(200))
    finally:
        logging.disable(logging.NOTSET)
    assert 2 == len(caplog.records)
