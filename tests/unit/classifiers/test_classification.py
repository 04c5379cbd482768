"""The fold, and who is asked (contract 3.2)."""

from __future__ import annotations

import random
from operator import attrgetter
from typing import Any

import pytest

from requests_smithy_retry import (
    Outcome,
    RetryAction,
    RetryClassifierPriority,
    RetryConfig,
    RetryError,
    StandardRetryStrategy,
    StopReason,
    classifier,
    default_classifiers,
    only,
    retry_history,
    retry_options,
)
from requests_smithy_retry.classifiers import Classification, Vote, classify, with_priority
from requests_smithy_retry.smithy import SmithyModelClassifier
from requests_smithy_retry.testing import FakeClock
from tests.support import Guide, Reply, scripted, send

NOTHING = RetryAction.no_action_indicated()
TRANSIENT, THROTTLED = RetryAction.transient_error(), RetryAction.throttling_error()
FORBIDDEN = RetryAction.retry_forbidden("no")
VERDICTS = [
    *(NOTHING, TRANSIENT, THROTTLED, RetryAction.server_error(), RetryAction.client_error()),
    *(FORBIDDEN, RetryAction.retry_forbidden("b")),
]
PLACE = attrgetter("priority")


def saying(verdict: Any, name: str = "one", **options: Any) -> Any:
    """A classifier that always says the same."""
    return classifier(lambda outcome: verdict, name=name, **options)


LOCKED = classifier(lambda outcome: TRANSIENT if outcome.status == 423 else None, name="locked", sees_successes=True)


@pytest.mark.parametrize(
    ("verdicts", "expected", "asked"),
    [
        ([], NOTHING, 0),
        ([None], NOTHING, 1),
        ([TRANSIENT], TRANSIENT, 1),
        ([TRANSIENT, None, NOTHING], TRANSIENT, 3),
        ([TRANSIENT, THROTTLED], THROTTLED, 2),
        ([THROTTLED, TRANSIENT], TRANSIENT, 2),
        ([TRANSIENT, FORBIDDEN, THROTTLED], FORBIDDEN, 2),
        ([FORBIDDEN, None], FORBIDDEN, 1),
    ],
)
def test_the_last_opinion_counts_and_forbidden_ends(verdicts: list[Any], expected: RetryAction, asked: int) -> None:
    """No action never overrides, another verdict replaces, forbidden stops the asking."""
    result = classify([saying(verdict) for verdict in verdicts], Outcome())
    assert result.action == expected
    assert [vote.action for vote in result.votes] == [NOTHING if item is None else item for item in verdicts[:asked]]


def test_each_classifier_is_told_the_verdict_so_far() -> None:
    """A classifier sees the verdict so far, not only its neighbour's opinion."""
    told: list[RetryAction] = []
    listen = classifier(lambda outcome, previous: told.append(previous), name="listen")
    result = classify([listen, saying(TRANSIENT), saying(None), listen], Outcome())
    votes = [("listen", NOTHING), ("one", TRANSIENT), ("one", NOTHING), ("listen", NOTHING)]
    assert result == Classification(TRANSIENT, tuple(Vote(*vote) for vote in votes))
    assert told == [NOTHING, TRANSIENT]


def test_what_is_no_verdict_is_a_bug_and_so_is_a_refusal() -> None:
    """The error names the classifier; its ``RetryError``, which is the strategy's to raise, has another name."""
    with pytest.raises(TypeError, match="the classifier 'one' returned True: a RetryAction or None is allowed"):
        classify([saying(True)], Outcome())

    def failing(outcome: Outcome) -> None:
        raise RetryError("from a loop of its own")

    with pytest.raises(RuntimeError, match=r"^the classifier 'failing' raised a RetryError") as caught:
        classify([classifier(failing)], Outcome())
    assert isinstance(caught.value.__cause__, RetryError)


def test_the_order_of_addition_does_not_matter_where_priorities_differ() -> None:
    """Any permutation of classifiers with distinct priorities gives the same verdict and the same votes."""
    for seed in range(300):
        draw = random.Random(seed)
        priority, items = RetryClassifierPriority.default(), []
        for number in range(draw.randrange(1, 7)):
            items.append(saying(draw.choice(VERDICTS), str(number), priority=priority))
            step = draw.choice([RetryClassifierPriority.run_before, RetryClassifierPriority.run_after])
            priority = step(priority)
        expected = classify(sorted(items, key=PLACE), Outcome())
        draw.shuffle(items)
        assert classify(sorted(items, key=PLACE), Outcome()) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"classifiers": [LOCKED]},
        {"strategy": StandardRetryStrategy(classifiers=[LOCKED], jitter="none", backoff=0, clock=FakeClock())},
    ],
    ids=["adapter", "strategy"],
)
def test_classifiers_are_added_on_the_strategy_or_by_the_adapters_option(options: Any) -> None:
    """Classifiers are added to the defaults, which go on as before."""
    adapter = scripted(423, 200, 503, 423, 200, **options)
    assert [200, 200] == [send(adapter).status_code for _ in range(2)]


def asked(response: Any) -> list[str]:
    """Who was asked about the first attempt."""
    return [vote.classifier for vote in retry_history(response).attempts[0].votes]


def test_only_leaves_the_given_ones_and_the_resend_rule() -> None:
    """On the strategy, and as the RFC's "set" in a block, where it replaces those of an outer block, too."""
    adapter = scripted(503, classifiers=only(LOCKED))
    assert send(adapter).status_code == 503
    adapter.script = [423]
    response = send(adapter, "POST")
    assert asked(response) == ["locked", "resend rule"]
    assert retry_history(response).stop_reason is StopReason.NOT_RESENDABLE
    adapter = scripted(418, classifiers=[saying(TRANSIENT, "strategy's")])
    with retry_options(classifiers=[saying(TRANSIENT, "outer")]), retry_options(classifiers=only(LOCKED)):
        assert asked(send(adapter)) == ["locked", "resend rule"]


def test_a_user_classifier_overrules_all_defaults_but_not_the_resend_rule() -> None:
    """A user's classifier runs after the defaults, and the resend rule after it, however late it is."""
    adapter = scripted(503, classifiers=[saying(FORBIDDEN)])
    assert retry_history(send(adapter)).why == "no"
    far_after = RetryClassifierPriority.default()
    for _ in range(10):
        far_after = RetryClassifierPriority.run_after(far_after)
    adapter = scripted(500, classifiers=[saying(TRANSIENT, priority=far_after)])
    assert retry_history(send(adapter, "POST")).stop_reason is StopReason.NOT_RESENDABLE


def test_a_default_is_moved_by_wrapping_it() -> None:
    """The statuses after everything else: then they overrule a user's classifier."""
    after = RetryClassifierPriority.run_after(RetryClassifierPriority.default())
    statuses, *kept = default_classifiers()
    adapter = scripted(503, 200, classifiers=only(with_priority(statuses, after), saying(THROTTLED), *kept))
    assert asked(send(adapter))[-3:] == ["one", "HttpStatusCodeClassifier", "resend rule"]


@classifier(sees_successes=True)
def polling(outcome: Outcome) -> RetryAction | None:
    if outcome.status == 200 and outcome.response.content == b"pending":
        return RetryAction.retryable_error_with_explicit_delay(TRANSIENT.reason.kind, 3)
    return None


@pytest.mark.parametrize("per_operation", [False, True])
@pytest.mark.parametrize("foreign", [False, True])
def test_a_success_is_retried_where_a_classifier_asks_to_see_it(per_operation: bool, foreign: bool) -> None:
    """Polling: the verdict on a 2xx leads to another attempt, and the last one is recorded as a success."""
    options: dict[str, Any] = {"strategy": Guide()} if foreign else {}
    always, here = ((), [polling]) if per_operation else ([polling], None)
    adapter = scripted(Reply(200, body=b"pending"), Reply(200, body=b"done"), classifiers=always, **options)
    with retry_options(classifiers=here):
        response = send(adapter)
    assert response.content == b"done"
    assert retry_history(response).stop_reason is StopReason.SUCCESS
    if foreign:
        assert options["strategy"].seen == ["https://api.example.com:443", (True, None), 1]
    else:
        assert adapter.clock.sleeps == [3]
        assert adapter.strategy.bucket("https://api.example.com:443").available == 500


def test_a_foreign_strategys_fold_is_that_of_the_operation() -> None:
    """A foreign strategy's error carries the operation's verdict: by priority, and with replaced defaults."""
    strategy = Guide()
    adapter = scripted(503, 503, 200, strategy=strategy)
    early = saying(FORBIDDEN, "early", priority=RetryClassifierPriority.run_before(RetryClassifierPriority.default()))
    with retry_options(classifiers=only(saying(TRANSIENT), early)):
        send(adapter)
    assert strategy.shown[0].is_retry_safe is False


NAMES = [
    *("HttpStatusCodeClassifier", "IdempotencyKeyClassifier", "UsedUpLimitClassifier", "AwsErrorCodeClassifier"),
    *("ServerVerdictClassifier", "SmithyModelClassifier", "ModeledAsRetryableClassifier", "TransientErrorClassifier"),
]


def test_the_set_is_in_the_order_of_the_contract() -> None:
    """The defaults go from the widest net to the narrowest, with the config's statuses; a model's has its place."""
    assert [item.name for item in default_classifiers()] == [name for name in NAMES if "Smithy" not in name]
    full = sorted([SmithyModelClassifier([]), *default_classifiers()], key=PLACE)
    assert [item.name for item in full] == NAMES
    statuses, *_ = default_classifiers(RetryConfig(retry_status_codes=[418]))
    assert statuses.codes == {418}
