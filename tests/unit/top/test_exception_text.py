"""The text shown for an exception (contract 12)."""

import errno

import pytest
import requests
from urllib3.exceptions import MaxRetryError, NewConnectionError

from requests_smithy_retry import retry_history
from requests_smithy_retry.errors import MOST_CAUSES, safe_error, without_text_of
from tests.support import scripted, send

SECRET = "hunter2"


def refused():
    """Return an exception as requests raises it, made from those of urllib3 and the socket."""
    cause = NewConnectionError(None, SECRET)
    cause.__cause__ = ConnectionRefusedError(errno.ECONNREFUSED, SECRET)
    return requests.ConnectionError(MaxRetryError(None, f"/?token={SECRET}", cause))


def test_an_exception_is_shown_by_its_type_and_those_of_its_causes():
    """The name of the system's error is added, as it tells more than the type; a message is never shown."""
    told = "ConnectionError from MaxRetryError from NewConnectionError from ConnectionRefusedError (ECONNREFUSED)"
    assert told == safe_error(refused())
    assert ("ValueError", "OSError") == (safe_error(ValueError(SECRET)), safe_error(OSError(SECRET)))
    assert "None" == safe_error(None)


def test_a_chain_that_never_ends_is_cut():
    """An exception that is its own cause, or has thousands of them, takes no time."""
    circle = ValueError(SECRET)
    circle.__cause__ = KeyError(SECRET)
    circle.__cause__.__cause__ = circle
    assert "ValueError from KeyError" == safe_error(circle)
    long = ValueError(SECRET)
    for _ in range(100):
        long = ValueError(long)
    assert MOST_CAUSES == safe_error(long).count("ValueError")


def test_a_quoted_exception_gives_way_to_its_type():
    """A quoted cause, by its repr or its text, gives way as well; the rest of the sentence stays."""
    error = refused()
    for quoted in (f"{error}", f"{error!r}", f"{error.args[0].reason}"):
        text = without_text_of(error, f"gave up on {quoted}, sorry")
        assert SECRET not in text
        assert text.startswith("gave up on ")
        assert text.endswith(", sorry")
    assert "quota" == without_text_of(ValueError(), "quota")
    assert "quota" == without_text_of(None, "quota")


def test_an_exception_that_cannot_be_shown_hides_nothing():
    """An exception whose text cannot be made cannot have been quoted; the sentence stays as it is."""

    class Mute(Exception):
        def __repr__(self):
            raise RuntimeError

        __str__ = __repr__

    assert ("quota", "Mute") == (without_text_of(Mute(), "quota"), safe_error(Mute()))


@pytest.mark.parametrize(("text", "patience"), [("t", 0), ("t", 5), ("left", 0), ("no attempts are left", 0)])
def test_an_exception_with_a_short_text_garbles_no_sentence_of_ours(text, patience):
    """Its letters in our words are no quotation."""
    sentences = []
    for said in (text, "a text that is nowhere else"):
        adapter = scripted(*[requests.ConnectionError(said)] * 9, quota="payoff", patience=patience, jitter="none")
        with pytest.raises(requests.ConnectionError) as caught:
            send(adapter)
        sentences.append(retry_history(caught.value).sentence)
    assert sentences[0] == sentences[1]


def test_a_short_text_that_is_quoted_gives_way():
    """As a word of its own, between any signs."""
    assert "(ValueError) or 'ValueError': left" == without_text_of(ValueError("t"), "(t) or 't': left")
