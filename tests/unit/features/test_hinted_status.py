"""Statuses that urllib3 retries where the response has a ``Retry-After``: for a translated ``Retry`` alone."""

from __future__ import annotations

import pytest

from requests_smithy_retry import HttpStatusCodeClassifier, Outcome, RetryAction, default_classifiers
from requests_smithy_retry.classifiers.protocol import priority_of
from requests_smithy_retry.features.urllib3_retry.translation import HintedStatusClassifier, Urllib3Rules
from tests.support import config_of
from tests.unit.classifiers.test_http_status import outcome_of

NOTHING = RetryAction.no_action_indicated()


@pytest.mark.parametrize(
    ("status", "hinted", "expected"),
    [
        (413, True, RetryAction.transient_error()),
        (429, True, RetryAction.throttling_error()),
        (413, False, NOTHING),
        (503, True, NOTHING),
    ],
)
def test_a_chosen_status_is_retried_where_there_is_a_hint(status: int, hinted: bool, expected: RetryAction) -> None:
    """Both the status and the hint are needed; 429 is throttling."""
    outcome = outcome_of(status)
    outcome.response.headers.update({"retry-after": "soon"} if hinted else {})
    assert HintedStatusClassifier([413, 429]).classify_retry(outcome, NOTHING) == expected


def test_an_exception_has_no_status() -> None:
    """The classifier has no opinion on an exception."""
    assert HintedStatusClassifier([413]).classify_retry(Outcome(error=OSError()), NOTHING) == NOTHING


@pytest.mark.parametrize(
    ("rules", "expected"),
    [(None, []), (Urllib3Rules(), []), (Urllib3Rules(hinted_status_codes=frozenset({413})), [{413}])],
)
def test_it_is_there_only_where_a_retry_has_such_statuses(rules: Urllib3Rules | None, expected: list[set[int]]) -> None:
    """The classifier is built in only if the rules have such statuses, and it has those."""
    made = [item for item in default_classifiers(config_of(rules=rules)) if isinstance(item, HintedStatusClassifier)]
    assert [item.codes for item in made] == expected


def test_it_runs_just_before_the_statuses_of_the_configuration() -> None:
    """The status classifier has a higher priority, so it may overrule it; its name is that of its class."""
    item = HintedStatusClassifier([413])
    assert priority_of(item) < HttpStatusCodeClassifier.priority
    assert item.name == "HintedStatusClassifier"
