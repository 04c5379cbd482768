"""The requests that may be sent again (contract 4 and 5): the rule by itself, and in the adapter."""

from __future__ import annotations

import itertools

import pytest
from urllib3.util.retry import Retry

from requests_smithy_retry import ErrorKind, Outcome, RetryAction, RetryReason, StopReason
from requests_smithy_retry.classifiers import RetryForbidden
from requests_smithy_retry.classifiers.outcome import Replayable, ResendFacts
from requests_smithy_retry.classifiers.resend import RESEND_RULE, resend_ruling
from tests.support import pool_timeout, reset_error, scripted, send

TRANSIENT = RetryAction.transient_error()
SAFE = RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, not_applied=True))
POST = ResendFacts("POST")


@pytest.mark.parametrize(
    ("facts", "status", "verdict", "allowed"),
    [
        *((POST, status, TRANSIENT, False) for status in (500, 503, None)),
        (POST, 500, RetryAction.no_action_indicated(), False),
        (ResendFacts("POST", idempotent=True), 500, TRANSIENT, True),
        (ResendFacts("POST", keyed=True), 500, TRANSIENT, True),
        (ResendFacts("POST", vouched=True), 500, TRANSIENT, True),
        (ResendFacts("POST", unwritten=True), None, TRANSIENT, True),
        *((POST, status, TRANSIENT, True) for status in (408, 425, 429)),
        (POST, 503, RetryAction.throttling_error(), True),
        (POST, 500, SAFE, True),
        (POST, 500, RetryAction.server_error(), False),
        (POST, 400, RetryAction.client_error(), False),
        (ResendFacts("GET", idempotent=True, vouched=False), 500, TRANSIENT, False),
        (ResendFacts("POST", keyed=True, vouched=False), 500, TRANSIENT, False),
        (ResendFacts("GET", idempotent=True, vouched=False), 429, TRANSIENT, True),
        (ResendFacts("GET", idempotent=True, vouched=False, unwritten=True), None, TRANSIENT, True),
        (ResendFacts("POST", strict=True), 429, RetryAction.throttling_error(), False),
        (ResendFacts("POST", strict=True, keyed=True), 500, TRANSIENT, False),
        (ResendFacts("POST", strict=True), 500, SAFE, False),
        (ResendFacts("POST", strict=True, unwritten=True), None, TRANSIENT, True),
        (ResendFacts("POST", strict=True, vouched=True), 500, TRANSIENT, True),
        (ResendFacts("GET", strict=True, idempotent=True), 500, TRANSIENT, True),
        (ResendFacts("POST", strict=True, idempotent=True, is_cut=True), None, TRANSIENT, False),
        (ResendFacts("POST", strict=True, idempotent=True, keyed=True, is_cut=True), None, TRANSIENT, True),
        (ResendFacts("POST", strict=True, vouched=True, is_cut=True), None, TRANSIENT, True),
        (ResendFacts("PUT", strict=True, idempotent=True, is_cut=True), None, TRANSIENT, True),
        (ResendFacts("POST", idempotent=True, is_cut=True), None, TRANSIENT, True),
    ],
)
def test_the_rule(facts: ResendFacts, status: int | None, verdict: RetryAction, allowed: bool) -> None:
    """Idempotent, keyed, vouched for, unwritten, or declared not applied by the server: nothing else is sent again."""
    ruling = resend_ruling(facts, status, verdict)
    assert (ruling is None) is allowed
    if ruling is not None:
        assert ruling.stop_reason is StopReason.NOT_RESENDABLE


class Spent(Replayable):
    """A body of which an attempt has read a part."""

    def obstacle(self) -> str | None:
        return "some of it was read"


def test_a_body_that_is_gone_is_never_sent_again() -> None:
    """No other fact about the request allows sending it again."""
    for flags in itertools.product([False, True], repeat=4):
        facts = ResendFacts("PUT", *flags, body=Spent())
        assert resend_ruling(facts, 429, SAFE) == RetryForbidden(
            "the body cannot be replayed: some of it was read", StopReason.BODY_NOT_REPLAYABLE
        )


def test_as_a_classifier_the_rule_only_forbids_what_was_indicated() -> None:
    """The rule has no opinion without an HTTP request, nor where no retry was indicated."""
    nothing = RetryAction.no_action_indicated()
    assert RESEND_RULE.classify_retry(Outcome(), TRANSIENT) == nothing
    assert RESEND_RULE.classify_retry(Outcome(resend=POST), nothing) == nothing
    assert RESEND_RULE.classify_retry(Outcome(resend=POST), SAFE) == nothing
    assert isinstance(RESEND_RULE.classify_retry(Outcome(resend=POST), TRANSIENT), RetryForbidden)


def test_strict_methods_are_urllib3s_habit() -> None:
    """Outside ``allowed_methods``, a 429 and a key do not help; only that nothing was written does."""
    strict = Retry(3, status_forcelist=[429], raise_on_status=False)
    for key in ({}, {"Idempotency-Key": "k"}):
        assert send(scripted(429, max_retries=strict), "POST", headers=key).status_code == 429
    assert send(scripted(pool_timeout(), 200, max_retries=strict), "POST").status_code == 200
    assert send(scripted(429, 200, max_retries=strict), "GET").status_code == 200


@pytest.mark.parametrize("method", ["QUERY", "LIST", "PROPFIND", "REPORT", "SEARCH", "search"])
def test_methods_that_only_read_are_sent_again(method: str) -> None:
    """QUERY, and what reads in Vault, WebDAV and CalDAV, is sent again; a translated ``Retry`` has its own set."""
    assert send(scripted(500, 200), method).status_code == 200
    assert send(scripted(reset_error(), 200), method).status_code == 200
    assert send(scripted(500, 200, max_retries=Retry(1, status_forcelist=[500])), method).status_code == 500


def test_a_query_is_sent_again_with_its_body() -> None:
    """The body of a QUERY is the question: it goes out whole each time."""
    adapter = scripted(503, reset_error(), 200)
    assert send(adapter, "QUERY", data=b"select a").status_code == 200
    assert [sent.body for sent in adapter.sent] == [b"select a"] * 3
