"""The options of a strategy in a wrapper, and those given beside it (contract 1): each holds, or somebody is told."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
import requests
from requests.auth import HTTPDigestAuth

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    RetryConfigWarning,
    RetryListener,
    RetryOptions,
    StandardRetryStrategy,
    classifier,
    resign,
    retry_history,
    retry_options,
)
from requests_smithy_retry.config.retry_config import ADAPTER_OPTIONS
from requests_smithy_retry.testing import FakeClock, scripted
from tests.behaviour.test_contradictions import asked
from tests.kinds import Plain, WithConfig, WithTokens, subclass
from tests.support import ROOT, URL, Guide, Reply, ended, send


class Own(Guide):
    """A strategy of the program's with a config, and tokens of its own."""

    config = RetryConfig(raise_on_status=True, timeout=3)


def other(name: str) -> Any:
    """A value of an option that is not its default."""
    return OTHERS[name] if name in OTHERS else asked(name)


def is_well(response: requests.Response) -> bool:
    return response.status_code == 200


OTHERS: dict[str, Any] = {
    **dict.fromkeys(("enabled", "resume", "trust_env"), False),
    "telemetry": {"log"},
    "listeners": [RetryListener()],
    "validate": is_well,
}


def told(adapter: Any) -> list[str]:
    """Send twice, and return the warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(2):
            ended(adapter)
    return [str(warning.message) for warning in found]


@pytest.mark.parametrize("name", sorted(ADAPTER_OPTIONS))
@pytest.mark.parametrize("wrapped", [lambda made: made, subclass, WithConfig])
def test_an_adapter_goes_by_the_options_that_its_strategy_was_given(name: str, wrapped: Any) -> None:
    """Whatever its class; what is given to the adapter, too, wins, and the environment comes after both."""
    value = RetryConfig(**{name: other(name)})
    strategy = wrapped(StandardRetryStrategy(config=value))
    assert getattr(RetryAdapter(strategy=strategy).retry_config, name) == getattr(value, name)
    default = getattr(RetryConfig(), name)
    assert getattr(RetryAdapter(strategy=strategy, **{name: default}).retry_config, name) == default


def test_the_environment_does_not_beat_the_options_of_a_wrapped_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code beats it, wherever the code says so."""
    monkeypatch.setenv("SMITHY_RETRY_OPERATION_TIMEOUT", "9")
    with pytest.warns(RetryConfigWarning, match="operation_timeout"):
        adapter = RetryAdapter(strategy=WithConfig(StandardRetryStrategy(operation_timeout=3)))
    assert 3 == adapter.retry_config.operation_timeout


@pytest.mark.parametrize("name", sorted(ADAPTER_OPTIONS))
def test_options_that_a_wrapper_hides_are_told_of(name: str) -> None:
    """Once, at the first token, with what to write."""
    adapter = scripted(200, 200, strategy=Plain(StandardRetryStrategy(**{name: other(name)})))
    said = told(adapter)
    what = f"{name} of the StandardRetryStrategy in Plain have no effect on the adapter"
    words = f"{what}: set Plain.config to the config of the StandardRetryStrategy"
    assert [words] == [text for text in said if "clock" not in text]
    beside = scripted(200, 200, strategy=Plain(StandardRetryStrategy(**{name: other(name)})), **{name: other(name)})
    assert [] == [text for text in told(beside) if "clock" not in text]


def test_a_wrapper_with_a_config_is_told_of_nothing() -> None:
    """Nor is a subclass, or a strategy that has nothing to lose."""
    clock = FakeClock()
    for strategy in (
        WithConfig(StandardRetryStrategy(clock=clock, operation_timeout=3)),
        subclass(StandardRetryStrategy(clock=clock, operation_timeout=3)),
        Plain(StandardRetryStrategy(clock=clock)),
    ):
        assert [] == told(scripted(200, 200, strategy=strategy, clock=clock, max_wait=5))


def test_statuses_beside_a_wrapper_are_told_to_have_no_effect() -> None:
    """The strategy in it has its own, unless they are the same."""
    clock = FakeClock()
    strategy = Plain(StandardRetryStrategy(clock=clock))
    why = "because the StandardRetryStrategy in Plain has its own: give it to that"
    words = f"retry_status_codes=frozenset({{418}}) (from code) has no effect, {why}"
    assert [words] == told(scripted(418, 418, strategy=strategy, retry_status_codes={418}, clock=clock))
    same = Plain(StandardRetryStrategy(clock=clock, retry_status_codes={418}))
    assert [] == told(scripted(418, 200, 200, strategy=same, retry_status_codes={418}, clock=clock))


@pytest.mark.parametrize("wrapped", [Plain, WithConfig, WithTokens])
def test_what_judges_successes_in_a_wrapped_strategy_is_asked_once(wrapped: Any) -> None:
    """Whatever tokens the wrapper hands out."""
    seen, found = list[bytes](), list[int]()

    def is_good(response: requests.Response) -> bool:
        seen.append(response.content)
        return response.content == b"good"

    @classifier(sees_successes=True)
    def mine(outcome: Any) -> None:
        found.append(outcome.attempt)

    strategy = wrapped(StandardRetryStrategy(clock=FakeClock(), validate=is_good, classifiers=[mine]))
    adapter = scripted(Reply(200, body=b"bad"), Reply(200, body=b"good"), strategy=strategy, clock=strategy.inner.clock)
    assert b"good" == send(adapter).content
    assert ([b"bad", b"good"], [1, 2]) == (seen, found)


def test_a_classifier_that_several_have_is_asked_once() -> None:
    """The strategy in the wrapper, the adapter, and a block around the call."""
    clock, asked, seen = FakeClock(), list[int](), list[int]()
    mine = classifier(lambda outcome: asked.append(outcome.attempt))

    def is_an_answer(response: requests.Response) -> bool:
        seen.append(response.status_code)
        return True

    strategy = Plain(StandardRetryStrategy(clock=clock, classifiers=[mine], validate=is_an_answer))
    adapter = scripted(503, 200, strategy=strategy, classifiers=[mine], validate=is_an_answer, clock=clock)
    with retry_options(classifiers=[mine]):
        history = retry_history(send(adapter))
    assert ([1], [200]) == (asked, seen)
    assert [vote.classifier for vote in history.attempts[0].votes].count(mine.name) == 1


def test_a_limiter_that_a_wrapper_hides_is_told_of() -> None:
    """Without ``send_permit`` nobody asks it."""
    clock = FakeClock()
    (said,) = told(scripted(200, 200, strategy=Plain(AdaptiveRetryStrategy(clock=clock)), clock=clock))
    assert said == "the rate limiter of the AdaptiveRetryStrategy in Plain has no effect: hand send_permit on"


def test_two_clocks_are_told_of() -> None:
    """A wait that one of them measures never ends by the other."""
    (said,) = told(scripted(200, 200, strategy=Plain(StandardRetryStrategy(clock=FakeClock())), clock=FakeClock()))
    assert said.startswith("the StandardRetryStrategy in Plain goes by another clock than the adapter")


def test_a_scripted_adapter_goes_by_the_clock_that_a_wrapper_hands_on() -> None:
    """Nobody has to give it twice."""
    strategy: Any = Plain(StandardRetryStrategy(clock=FakeClock()))
    strategy.clock = strategy.inner.clock
    adapter = scripted(200, 200, strategy=strategy)
    assert ([], strategy.clock) == (told(adapter), adapter.clock)


def test_two_clocks_are_refused_where_they_are_seen_at_once() -> None:
    """An adapter has the clock of its built-in strategy, and takes no other one, nor a strategy with another one."""
    clock = FakeClock()
    strategy = StandardRetryStrategy(clock=clock)
    assert clock is RetryAdapter(strategy=strategy).clock
    words = r"clock=<FakeClock now=5> \(from code\): the clock of the strategy, <FakeClock now=0>, is allowed"
    with pytest.raises(RetryConfigError, match=words):
        RetryAdapter(strategy=strategy, clock=FakeClock(5))
    adapter = RetryAdapter(clock=FakeClock(5))
    with pytest.raises(RetryConfigError, match=words):
        adapter.strategy = strategy
    assert strategy is not adapter.strategy


def test_a_strategy_that_is_assigned_does_not_bring_options_of_the_adapter() -> None:
    """A warning names them."""
    adapter = RetryAdapter(operation_timeout=5)
    with pytest.warns(RetryConfigWarning, match="operation_timeout, timeout of the StandardRetryStrategy have no eff"):
        adapter.strategy = StandardRetryStrategy(operation_timeout=3, timeout=7)
    adapter.strategy = StandardRetryStrategy(operation_timeout=5, patience=2)
    adapter.strategy = Guide()
    assert 5 == adapter.retry_config.operation_timeout


def test_a_listed_success_is_raised_by_the_list_of_the_strategy() -> None:
    """``raise_on_status`` asks whether the last status was to be retried; the strategy in a wrapper has that list."""
    clock = FakeClock()
    inner = StandardRetryStrategy(clock=clock, retry_status_codes={202}, raise_on_status=True, max_attempts=2)
    for strategy in (inner, WithConfig(inner)):
        error = ended(scripted(202, 202, strategy=strategy, clock=clock))
        assert isinstance(error, requests.exceptions.RetryError)


def test_max_retries_of_an_adapter_reads_as_the_options_of_its_strategy() -> None:
    """Those of a wrapped one, too."""
    inner = StandardRetryStrategy(max_attempts=5, retry_status_codes={418}, raise_on_status=True)
    for strategy in (inner, subclass(inner), WithConfig(inner)):
        shown = RetryAdapter(strategy=strategy).max_retries
        assert (4, {418}, True) == (shown.total, set(shown.status_forcelist), shown.raise_on_status)


@pytest.mark.parametrize("auth", [None, resign(HTTPDigestAuth("user", "password"))])
def test_a_401_after_the_last_attempt_of_a_wrapped_strategy_is_answered(auth: Any) -> None:
    """As it is with one that is not wrapped; no attempt follows the answer."""
    stale = Reply(401, {"WWW-Authenticate": 'Digest realm="a", nonce="2", qop="auth", stale=true'})
    clock = FakeClock()
    inner = StandardRetryStrategy(clock=clock, max_attempts=2, on_unauthorized=lambda _: {"Authorization": "new"})
    for strategy in (inner, WithConfig(inner)):
        adapter = scripted(503, stale, 503, 200, strategy=strategy, clock=clock)
        request = requests.Request("GET", URL, headers={"Authorization": "old"}, auth=auth).prepare()
        assert (503, 3) == (adapter.send(request).status_code, len(adapter.sent))


def test_a_strategy_with_tokens_of_its_own_may_have_a_config() -> None:
    """The adapter goes by it, and takes no other one beside it."""
    adapter = RetryAdapter(strategy=Own())
    assert (True, 3) == (adapter.retry_config.raise_on_status, adapter.retry_config.timeout)
    with pytest.raises(RetryConfigError, match="only one of config and a strategy that has one is allowed"):
        RetryAdapter(strategy=Own(), config=RetryConfig())


def test_a_config_beside_a_strategy_holds_nothing_that_only_a_built_in_one_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An option of the program's is an error, a variable is warned of."""
    with pytest.raises(RetryConfigError, match=r"max_attempts=7 \(from code\): it belongs to the strategy"):
        RetryAdapter(strategy=Guide(), config=RetryConfig(max_attempts=7))
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "7")
    config = RetryConfig.from_environment(timeout=3)
    with pytest.warns(RetryConfigWarning, match="SMITHY_RETRY_MAX_ATTEMPTS.*belongs to the strategy"):
        adapter = scripted(503, 200, strategy=Guide(), config=config)
    assert 3 == adapter.retry_config.timeout
    assert 2 == len(retry_history(send(adapter)).attempts)


PAGE = (ROOT / "docs/howto/write-a-strategy.md").read_text(encoding="utf-8").partition("## Which options go where")[2]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")][
    2:
]
OF_ROWS = {name: row[1:] for row in ROWS for name in re.findall(r"`(\w+)`", row[0])}
KINDS: list[Any] = [
    lambda clock: subclass(StandardRetryStrategy(clock=clock)),
    lambda clock: WithConfig(StandardRetryStrategy(clock=clock)),
    lambda clock: Guide(),
]


@pytest.mark.parametrize("name", RetryOptions.__annotations__)
def test_the_page_says_which_option_goes_where(name: str) -> None:
    """An option beside a strategy is an error, is warned of, or counts: as the table has it, or as its first row."""
    ends = []
    for kind in KINDS:
        clock = FakeClock()
        try:
            adapter = scripted(200, 200, strategy=kind(clock), clock=clock, **{name: other(name)})
        except RetryConfigError:
            ends.append("error")
        else:
            counts = getattr(adapter.retry_config, name) == getattr(RetryConfig(**{name: other(name)}), name)
            ends.append("warning" if told(adapter) else "no error" if counts else "")
    expected = OF_ROWS.get(name, ROWS[0][1:])
    assert ends == [cell if cell in ("error", "warning") else "no error" for cell in expected]
