"""The protocol of a classifier, and how one is made (contract 3.2)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from requests_smithy_retry import (
    Outcome,
    RetryAction,
    RetryClassifierPriority,
    RetryConfig,
    RetryConfigError,
    classifier,
    retry_options,
)
from requests_smithy_retry.classifiers import HttpStatusCodeClassifier, with_priority

NOTHING = RetryAction.no_action_indicated()
AFTER = RetryClassifierPriority.run_after(RetryClassifierPriority.default())


def test_a_function_is_a_classifier_in_one_line() -> None:
    """With the function's name, after all defaults, unless told otherwise; a second argument is the verdict so far."""
    made = classifier(lambda outcome: RetryAction.server_error())
    assert made.classify_retry(Outcome(), NOTHING) == RetryAction.server_error()
    assert (made.name, made.priority, made.sees_successes) == ("<lambda>", RetryClassifierPriority.default(), False)
    assert repr(made) == "<classifier <lambda>>"

    @classifier(name="an echo", priority=AFTER, sees_successes=True)
    def echo(outcome: Outcome, previous: RetryAction) -> RetryAction:
        return previous

    assert echo.classify_retry(Outcome(), RetryAction.client_error()) == RetryAction.client_error()
    assert (echo(Outcome()), echo(Outcome(), RetryAction.server_error())) == (NOTHING, RetryAction.server_error())
    assert (echo.name, echo.priority, echo.sees_successes) == ("an echo", AFTER, True)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda outcome, verdict: verdict, True),
        (lambda outcome, previous=None: previous, True),
        (lambda outcome, bound=NOTHING: bound, False),
        (lambda outcome, bound=NOTHING, previous=NOTHING: bound, False),
        (lambda outcome, *, previous=NOTHING: previous, False),
    ],
    ids=["a second argument", "one of that name", "a bound value", "two bound values", "by keyword alone"],
)
def test_who_gets_the_verdict_so_far(function: Any, expected: bool) -> None:
    """A second argument that it cannot do without, or that is called ``previous``; a bound value is left alone."""
    said = classifier(function).classify_retry(Outcome(), RetryAction.client_error())
    assert (said == RetryAction.client_error()) is expected


def test_any_callable_will_do() -> None:
    """A variadic one gets both arguments, an object is named by its class, one without a signature one."""

    class Callable_:
        def __call__(self, *given: Any) -> RetryAction | None:
            return RetryAction.retry_forbidden(str(len(given)))

    made = classifier(Callable_())
    assert made.name == "Callable_"
    assert made.classify_retry(Outcome(), NOTHING) == RetryAction.retry_forbidden("2")

    class Unsigned(Callable_):
        @property
        def __signature__(self) -> None:
            raise ValueError("none")

    assert classifier(Unsigned()).classify_retry(Outcome(), NOTHING) == RetryAction.retry_forbidden("1")


def test_a_default_can_be_wrapped_at_another_priority() -> None:
    """The wrapper asks the inner one, under its name, and runs where it is told."""
    made = with_priority(HttpStatusCodeClassifier({202}), AFTER)
    assert (made.name, made.priority, made.sees_successes) == ("HttpStatusCodeClassifier", AFTER, True)
    assert made.classify_retry(Outcome(), NOTHING) == NOTHING
    echo = with_priority(classifier(lambda outcome, previous: previous), AFTER)
    assert echo.classify_retry(Outcome(), RetryAction.client_error()) == RetryAction.client_error()


class EarlyByMethod:
    """A classifier whose priority is a method, as in the RFC's example."""

    name = "early"

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> None:
        return None

    def priority(self) -> RetryClassifierPriority:
        return RetryClassifierPriority.run_before(RetryClassifierPriority.http_status_code_classifier())


@pytest.mark.parametrize(
    "make",
    [
        lambda: classifier(lambda outcome: None, priority="first"),
        lambda: with_priority(HttpStatusCodeClassifier(), 7),
        lambda: RetryConfig(classifiers=[EarlyByMethod()]),
        lambda: retry_options(classifiers=[SimpleNamespace(name="a", classify_retry=print, priority=7)]),
    ],
    ids=["of a function", "of a wrapper", "in a config", "in a block"],
)
def test_a_priority_that_is_none_is_refused(make: Any) -> None:
    """Rather than read as the default; the error says what is allowed."""
    allowed = "an attribute or a property, not a method, that holds a RetryClassifierPriority is allowed"
    with pytest.raises((TypeError, RetryConfigError), match=f"priority=.*: {allowed}"):
        make()


@pytest.mark.parametrize(
    "item",
    [
        *(object(), "name", lambda outcome: None, SimpleNamespace(classify_retry=print), SimpleNamespace(name="a")),
        *(SimpleNamespace(name=5, classify_retry=print), SimpleNamespace(name="a", classify_retry="print")),
    ],
)
def test_what_cannot_be_used_as_a_classifier(item: Any) -> None:
    """A classifier needs a name and a method; a bare function is made one with ``classifier``."""
    with pytest.raises(RetryConfigError, match="a collection of classifiers is allowed"):
        RetryConfig(classifiers=[item])


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda outcome, *, previous: None, "'previous'"),
        (lambda outcome, *, patience: None, "'patience'"),
        (lambda outcome, previous, *, patience: None, "'patience'"),
        (lambda outcome, previous, third: None, "'third'"),
        (lambda: None, "too many positional arguments"),
    ],
    ids=["by keyword", "another keyword", "both", "a third", "none"],
)
def test_a_function_that_cannot_be_asked_is_refused_at_once(function: Any, why: str) -> None:
    """``classifier`` refuses such a function when it is made, not at the first failure of a request."""
    with pytest.raises(TypeError, match=rf"{why}; a function of \(outcome\) or \(outcome, previous\) is allowed$"):
        classifier(function)
