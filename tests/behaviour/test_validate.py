"""``validate``: the program's own function judges responses that look like successes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    Outcome,
    RetryAction,
    RetryConfig,
    StandardRetryStrategy,
    StopReason,
    classifier,
    mount,
    only,
    retry_history,
    retry_options,
)
from requests_smithy_retry.testing import FaultServer
from requests_smithy_retry.testing import Reply as FaultReply
from tests.support import Reply, scripted, send

EMPTY, READY = Reply(200, body=b""), Reply(200, body=b"ready")


def is_there(response: requests.Response) -> bool:
    return response.content != b""


def soon(response: requests.Response) -> float:
    return response.content != b"" or 5.0


@pytest.mark.parametrize(
    ("script", "options", "expected"),
    [
        ([EMPTY, READY], {"validate": is_there}, (b"ready", 2, StopReason.SUCCESS)),
        ([EMPTY] * 3, {"validate": is_there}, (b"", 3, StopReason.MAX_ATTEMPTS)),
        ([EMPTY] * 3, {"validate": is_there, "quota": 10}, (b"", 1, StopReason.QUOTA_EXCEEDED)),
        ([EMPTY], {}, (b"", 1, StopReason.SUCCESS)),  # never by default
        ([READY], {"validate": is_there}, (b"ready", 1, StopReason.SUCCESS)),
        ([503, EMPTY, READY], {"validate": is_there}, (b"ready", 3, StopReason.SUCCESS)),
        ([Reply(404)], {"validate": is_there}, (b"", 1, StopReason.NOT_RETRYABLE)),
        # Polls cost nothing.
        (
            [*[EMPTY] * 20, READY],
            {"validate": soon, "max_attempts": 30, "quota": 14},
            (b"ready", 21, StopReason.SUCCESS),
        ),
        ([EMPTY] * 2, {"validate": soon, "operation_timeout": 8}, (b"", 2, StopReason.DEADLINE)),
        ([EMPTY], {"validate": lambda _: 500.0}, (b"", 1, StopReason.HINT_TOO_LONG)),
    ],
)
@pytest.mark.parametrize("way", ["adapter", "block"])
def test_false_is_a_failure_and_seconds_are_a_poll(
    way: str, script: list[Any], options: dict[str, Any], expected: tuple[bytes, int, StopReason | None]
) -> None:
    """The last response is returned."""
    options = dict(options)
    block = {"validate": options.pop("validate")} if way == "block" and "validate" in options else {}
    adapter = scripted(*script, **options)
    with retry_options(**block):
        response = send(adapter)
    reason = retry_history(response).stop_reason
    assert expected == (response.content, len(adapter.sent), reason if expected[2] else None)


def test_seconds_are_waited_and_told() -> None:
    """Each poll waits so long, and after the last the history has the number."""
    adapter = scripted(*[EMPTY] * 3, validate=soon, max_attempts=3)
    assert (5.0, 10.0) == (retry_history(send(adapter)).retry_after, adapter.clock.now())


def test_the_last_answer_is_told_with_who_rejected_it() -> None:
    """A 200 alone would not say why the call gave up; a success after a rejected one is told without it."""
    history = retry_history(send(scripted(*[200] * 3, validate=lambda response: False, backoff=0)))
    assert "gave up after attempt 3: no attempts are left; last answer: 200 (validate wants a retry)" == str(history)
    adapter = scripted(200, 200, validate=lambda response: len(adapter.sent) == 2, backoff=0)
    told = retry_history(send(adapter)).explain().splitlines()
    assert told[0].startswith("attempt 1: 200 (validate wants a retry)")
    assert "succeeded at attempt 2" == told[-1]


def test_the_resend_rule_stands() -> None:
    """A POST that was answered with a 200 is not sent again, unless it is declared idempotent."""
    adapter = scripted(EMPTY, validate=is_there)
    assert StopReason.NOT_RESENDABLE is retry_history(send(adapter, "POST", data=b"x")).stop_reason
    with retry_options(idempotent=True):
        assert b"ready" == send(scripted(EMPTY, READY, validate=is_there), "POST", data=b"x").content


def counted() -> tuple[list[str], Callable[[str], Callable[[requests.Response], bool]]]:
    asked: list[str] = []

    def make(name: str) -> Callable[[requests.Response], bool]:
        return lambda response: bool(asked.append(name)) or True

    return asked, make


def test_the_innermost_function_is_asked_alone() -> None:
    """A block's in place of the adapter's and of outer blocks'; ``only`` leaves out those around it."""
    asked, make = counted()
    adapter = scripted(*[READY] * 5, validate=make("adapter"))
    send(adapter)
    with retry_options(validate=make("outer")):
        send(adapter)
        with retry_options(validate=make("inner")):
            send(adapter)
        with retry_options(classifiers=only()):
            send(adapter)
        send(adapter)
    assert ["adapter", "outer", "inner", "outer"] == asked


@pytest.mark.parametrize("classifiers", ["adapter", "block"])
@pytest.mark.parametrize("validate", ["adapter", "block"])
def test_it_is_asked_after_the_programs_classifiers(validate: str, classifiers: str) -> None:
    """Wherever each was given, so its seconds take the place of their verdict."""

    @classifier(sees_successes=True)
    def says_no(outcome: Outcome) -> RetryAction | None:
        return RetryAction.server_error() if outcome.status == 202 else None

    given: dict[str, dict[str, Any]] = {"adapter": {}, "block": {}}
    given[validate]["validate"] = lambda response: 3 if response.status_code == 202 else True
    given[classifiers]["classifiers"] = [says_no]
    adapter = scripted(202, 200, **given["adapter"])
    with retry_options(**given["block"]):
        assert (200, [3.0]) == (send(adapter).status_code, adapter.clock.sleeps)


def test_redirects_are_not_asked_about() -> None:
    """They are no answer to anybody yet."""
    asked, make = counted()
    send(scripted(Reply(302, {"Location": "/"}), validate=make("adapter")))
    assert [] == asked


@pytest.mark.parametrize("found", [None, "yes", -1, float("nan")])
def test_a_function_that_returns_anything_else_is_a_bug(found: Any) -> None:
    """A ``TypeError`` says what it may return; its own exceptions reach the caller, too."""
    with pytest.raises(TypeError, match=r"validate: True, False or seconds \(0 or more\) is allowed, not "):
        send(scripted(READY, validate=lambda response: found))


def test_it_is_kept_by_copies_and_shown_as_the_function() -> None:
    """Configs with the same function are equal, and a strategy that is driven by hand knows it."""
    config = RetryConfig(validate=is_there)
    assert (config, config) == (RetryConfig(validate=is_there), config.replace(validate=config.validate))
    assert repr(is_there) == repr(config.validate)
    assert StandardRetryStrategy(config=config).policy.sees_successes


@pytest.mark.real_time
def test_it_judges_what_a_socket_brings() -> None:
    """An empty 200, then the answer."""
    script = [FaultReply(200), FaultReply(200, body=b"ready")]
    with FaultServer(script) as server, mount(requests.Session(), validate=is_there, backoff=0) as session:
        assert b"ready" == session.get(server.url).content
