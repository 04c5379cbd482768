"""The pytest plugin: fixtures, and nothing before one is asked for."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import responses

from requests_smithy_retry import mount
from tests.support import python

pytest_plugins = ["pytester"]
URL = "https://api.example.com/things"


@responses.activate
def test_five_lines_are_a_test(retry_clock: Any, retry_attempts: Any) -> None:
    """Code under test waits for nothing, and its attempts are there to assert on."""
    responses.get(URL, status=503, headers={"Retry-After": "30"})
    responses.get(URL, status=200)
    assert mount(requests.Session(), jitter="none").get(URL).ok
    retry_attempts.assert_endings(503, 200)
    assert [30.0] == retry_clock.sleeps


def test_the_fault_server_is_at_hand(fault_server: Any, retry_clock: Any) -> None:
    """A real socket that does as it is told: two 503s, a cut body, then well."""
    from requests_smithy_retry.testing import CutBody, Reply

    fault_server.script([Reply(503), Reply(503), CutBody()])
    assert mount(requests.Session(), max_attempts=4).get(fault_server.url).ok
    assert len(retry_clock.sleeps) == 3


@responses.activate
def test_retries_are_switched_off(retries_disabled: None) -> None:
    """With the fixture there is one attempt."""
    call = responses.get(URL, status=503)
    assert mount(requests.Session()).get(URL).status_code == 503
    assert call.call_count == 1


@responses.activate
def test_attempts_are_capped(cap_retry_attempts: Any, retry_clock: Any) -> None:
    """The cap holds from the call on, for attempts while the adapter waits for the service as well."""
    call = responses.get(URL, status=503)
    cap_retry_attempts(2)
    assert mount(requests.Session(), max_attempts=9).get(URL).status_code == 503
    assert call.call_count == 2
    assert mount(requests.Session(), operation_timeout=60).get(URL).status_code == 503
    assert call.call_count == 4


DOWN = f"""
import pytest, requests, responses
from requests_smithy_retry import mount

session = mount(requests.Session())

def count(name):
    call = responses.get("{URL}", status=503)
    session.get("{URL}")
    with open("calls.txt", "a") as file:
        file.write(f"{{name}} {{call.call_count}},")

@responses.activate
def test_one(retry_clock):
    count("one")

@responses.activate
def test_other(retry_clock):
    count("other")

@pytest.mark.keep_retry_state
@responses.activate
def test_after(retry_clock):
    count("after")
"""


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> str:
    """Run pytest with the plugin, and with nothing else that is installed; return its output."""
    options = ("-m", "pytest", "-p", "requests_smithy_retry_pytest", "-p", "no:cacheprovider", "--strict-markers")
    run = python(*options, *arguments, cwd=pytester.path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert 0 == run.returncode, run.stdout + run.stderr
    return run.stdout


def calls_in_order(pytester: pytest.Pytester, *tests: str) -> dict[str, int]:
    """Run tests whose module has one session for a service that is down; return the requests that each sent."""
    file = pytester.makepyfile(DOWN).name
    run_pytest(pytester, *(f"{file}::test_{name}" for name in tests))
    said = (pytester.path / "calls.txt").read_text().rstrip(",").split(",")
    return {name: int(number) for name, number in (words.split() for words in said)}


@pytest.mark.real_time
@pytest.mark.once
@pytest.mark.parametrize("order", [("one", "other"), ("other", "one")])
def test_each_test_begins_anew(pytester: pytest.Pytester, order: tuple[str, str]) -> None:
    """A service that is down costs each test the same number of requests, in any order, with one session for all."""
    alone = calls_in_order(pytester, order[0])[order[0]]
    (pytester.path / "calls.txt").unlink()
    assert dict.fromkeys(order, alone) == calls_in_order(pytester, *order)


@pytest.mark.real_time
@pytest.mark.once
def test_a_test_with_the_marker_begins_where_the_last_one_ended(pytester: pytest.Pytester) -> None:
    """The outage of the test before is still known, so nothing is retried."""
    calls = calls_in_order(pytester, "one", "after")
    assert (True, 1) == (calls["one"] > 1, calls["after"])


@pytest.mark.real_time
def test_loading_the_plugin_imports_nothing(pytester: pytest.Pytester) -> None:
    """A test run that asks for no fixture has imported neither the package nor requests."""
    pytester.makepyfile(
        "import sys\ndef test_nothing():\n"
        "    assert not {'requests', 'requests_smithy_retry', 'urllib3'} & set(sys.modules)\n"
    )
    assert "1 passed" in run_pytest(pytester)
