"""The guard against retries within retries."""

import io
import warnings
from types import SimpleNamespace

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse
from urllib3.util.retry import RequestHistory, Retry

from requests_smithy_retry import (
    RetryAdapter,
    RetryConfigError,
    RetryConfigWarning,
    RetryError,
    StopReason,
    classifier,
)
from requests_smithy_retry.classifiers.actions import RetryAction
from requests_smithy_retry.sending import nested_retries as module
from requests_smithy_retry.testing import FaultServer, Reply
from requests_smithy_retry.testing.clock import FakeClock
from tests.support import URL, ScriptedTransport, reset_error, scripted, send


@pytest.fixture(autouse=True)
def _forget():
    known = dict(module._warned)
    module._warned.clear()
    yield
    module._warned.clear()
    module._warned.update(known)


def around(inner, **options):
    """An adapter of ours that sends by way of another adapter."""

    class Middle(HTTPAdapter):
        def send(self, request, **more):
            return inner.send(request, **more)

    class Stacked(RetryAdapter, Middle):
        pass

    return Stacked(clock=FakeClock(), **options)


def get(adapter, script):
    with FaultServer(script) as server, requests.Session() as session:
        session.mount("http://", adapter)
        session.get(server.url)
        return len(server.requests)


def test_our_adapter_inside_ours_is_warned_about_once():
    """The warning multiplies the attempts; the second operation is silent."""
    stacked = around(RetryAdapter(max_attempts=3, quota=None, clock=FakeClock()), max_attempts=4, quota=None)
    with pytest.warns(RetryConfigWarning, match="up to 4 x 3 = 12 requests") as caught:
        assert 12 == get(stacked, [Reply(503)] * 20)
    assert 1 == len(caught)
    assert 2 == get(stacked, [Reply(503)])


@pytest.mark.parametrize("attempts", [(1, 3), (3, 1)])
def test_one_of_them_with_one_attempt_multiplies_nothing(attempts):
    """Nested adapters of which one does not retry are fine."""
    inner = RetryAdapter(max_attempts=attempts[0], quota=None, clock=FakeClock())
    stacked = around(inner, max_attempts=attempts[1], quota=None)
    assert 3 == get(stacked, [Reply(503)] * 5)


def test_a_urllib3_retry_beneath_is_warned_about():
    """Retries that urllib3 made are found in the response's history."""
    inner = HTTPAdapter(max_retries=Retry(1, status_forcelist=[503], raise_on_status=False))
    with pytest.warns(RetryConfigWarning, match="made 2 requests of one attempt: 3 x 2 = 6 requests or more"):
        assert 6 == get(around(inner, quota=None), [Reply(503)] * 10)


def test_requests_of_a_classifier_are_its_own_business():
    """A classifier may send the same request by another adapter; that multiplies no attempt."""
    other = requests.Session()
    other.mount("http://", RetryAdapter(max_attempts=2, clock=FakeClock()))

    @classifier
    def looks_again(outcome, previous):
        other.get(outcome.request.url)
        return RetryAction.no_action_indicated()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 1 < get(RetryAdapter(max_attempts=2, clock=FakeClock(), classifiers=[looks_again]), [Reply(503)] * 6)
    other.close()


def test_another_request_further_up_is_not_nested():
    """An upload that is fed by another request is no retry within a retry."""
    feeding = requests.Session()
    feeding.mount("http://", RetryAdapter(max_attempts=2, clock=FakeClock()))
    with FaultServer({"/feed": [Reply(503)], "/up": []}) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter())

        def body():
            yield feeding.get(f"{server.url}/feed").content

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert 200 == session.post(f"{server.url}/up", data=body()).status_code
    feeding.close()


def test_a_subclass_with_its_own_max_retries_is_refused():
    """The constructor refuses, because urllib3 would retry each attempt."""
    own = type("Own", (RetryAdapter,), {"max_retries": Retry(3)})
    with pytest.raises(RetryConfigError, match=r"max_retries=Retry\(total=3.*class Own.*urllib3 would retry beneath"):
        own()


def test_a_very_deep_stack_is_not_searched_through(monkeypatch):
    """The search for another adapter ends after ``MAX_FRAMES`` frames."""
    monkeypatch.setattr(module, "MAX_FRAMES", 2)
    stacked = around(RetryAdapter(max_attempts=2, quota=None, clock=FakeClock()), max_attempts=2, quota=None)
    assert 4 == get(stacked, [Reply(503)] * 5)


class Foreign:
    """A strategy that never says how many attempts it allows; here it allows none after the first."""

    def acquire_initial_retry_token(self, *, token_scope=None):
        return SimpleNamespace(retry_count=0, retry_delay=0.0)

    def refresh_retry_token_for_retry(self, *, token_to_renew, error):
        raise RetryError("no", stop_reason=StopReason.STRATEGY_REFUSED)

    def record_success(self, *, token):
        """Do nothing."""


def warnings_of(act):
    """Return the texts of the ``RetryConfigWarning`` that ``act`` gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(item.message) for item in caught if item.category is RetryConfigWarning]


@pytest.mark.parametrize(
    ("outer", "inner", "product"),
    [
        ({"max_attempts": 4}, {"max_attempts": 3}, ": up to 4 x 3 = 12 requests"),
        ({"max_attempts": 2}, {"max_attempts": 2}, ": up to 2 x 2 = 4 requests"),
        ({"strategy": Foreign()}, {"max_attempts": 2}, ""),
        ({"max_attempts": 2}, {"strategy": Foreign()}, ""),
        ({"strategy": Foreign()}, {"strategy": Foreign()}, ""),
        ({"max_attempts": 1}, {"strategy": Foreign()}, None),
        ({"strategy": Foreign()}, {"max_attempts": 1}, None),
        ({"max_attempts": 1}, {"max_attempts": 1}, None),
    ],
)
def test_the_warning_says_who_is_inside_whom_and_what_it_comes_to(outer, inner, product):
    """The product where both say how many attempts they make; nothing where one of them does not retry."""
    expected = f"ScriptedAdapter runs inside Stacked, and both retry{product}. Give one of them max_attempts=1"
    stacked = around(scripted(*[503] * 20, **inner), **outer)
    assert warnings_of(lambda: send(stacked)) == ([] if product is None else [expected])


@pytest.mark.parametrize(
    ("options", "product"),
    [({"max_attempts": 2, "patience": 0}, ": 2 x 3 = 6 requests or more"), ({"strategy": Foreign()}, "")],
)
def test_the_warning_of_a_urllib3_retry_counts_its_requests(options, product):
    """The product where the strategy says how many attempts there are."""

    class Retried(ScriptedTransport):
        def send(self, request, **more):
            response = super().send(request, **more)
            response.raw.retries = Retry(0, history=[RequestHistory("GET", URL, None, 503, None)] * 2)
            return response

    expected = f"a urllib3 Retry beneath Stacked made 3 requests of one attempt{product}. "
    expected += "Let what is beneath send with max_retries=0"
    assert warnings_of(lambda: send(around(Retried(script=[503, 503]), **options))) == [expected]


@pytest.mark.parametrize("raw", [None, io.BytesIO(), HTTPResponse(io.BytesIO(), preload_content=False)])
def test_a_response_need_not_know_of_retries(raw):
    """A response of another adapter may have any kind of ``raw``."""

    class Beneath(ScriptedTransport):
        def send(self, request, **more):
            response = super().send(request, **more)
            response.raw = raw
            return response

    assert warnings_of(lambda: send(around(Beneath(script=[404])))) == []


def test_an_exception_has_no_retries_of_urllib3():
    """An attempt that ends with an exception leads to no warning."""

    def attempt():
        with pytest.raises(requests.ConnectionError):
            send(around(ScriptedTransport(script=[reset_error()]), max_attempts=1))

    assert warnings_of(attempt) == []


@pytest.mark.parametrize("differs", [{"method": "PUT"}, {"url": f"{URL}/other"}, {}])
def test_another_request_within_a_send_is_not_nested(differs):
    """A request with another method or URL, or through the same adapter, is a send of its own."""

    class Beneath(ScriptedTransport):
        def send(self, request, **more):
            if not self.sent:
                super().send(request, **more)
                send(other, **differs)
            return super().send(request, **more)

    stacked = around(Beneath(script=[503] * 20), max_attempts=2)
    other = scripted(*[503] * 20, max_attempts=2) if differs else stacked
    assert warnings_of(lambda: send(stacked)) == []


def test_each_nesting_is_warned_about():
    """The warning comes once for each pair of nested adapters."""
    pair = around(scripted(*[503] * 20, max_attempts=2), max_attempts=2)
    other = around(scripted(*[503] * 20, max_attempts=3), max_attempts=2)
    assert len(warnings_of(lambda: [send(pair), send(other), send(pair), send(other)])) == 2
