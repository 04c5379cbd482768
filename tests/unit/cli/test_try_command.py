"""``try``: one real operation, told as it happens."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("click")

from click.testing import CliRunner

from requests_smithy_retry.cli.try_command import try_url
from requests_smithy_retry.testing import CloseAfterRequest, FaultServer, Reply, skipped_waits


def run(*arguments: str) -> Any:
    with skipped_waits():
        return CliRunner().invoke(try_url, list(arguments))


@pytest.fixture
def server(fault_server: FaultServer) -> FaultServer:
    return fault_server


def test_it_tells_each_attempt(server: FaultServer) -> None:
    """Attempts with their votes, waits with what the quota holds, and the last sentence."""
    server.script([Reply(503, {"Retry-After": "7"}), Reply(200)])
    result = run(server.url)
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert lines[0].startswith("attempt 1: 503 in 0.")
    assert [
        "    HttpStatusCodeClassifier: transient",
        "    retry in 7.000 s (retry-after); tokens left: 1",
    ] == (lines[1:3])
    assert lines[3].startswith("attempt 2: 200 in 0.")
    assert "succeeded at attempt 2 of 3" == lines[4]


def test_it_tells_what_was_waited_for_the_service(server: FaultServer) -> None:
    """The wait for the service has a line of its own, in plain words."""
    server.script([Reply(503)] * 3)
    lines = run(server.url).output.splitlines()
    (told,) = [line for line in lines if "waited" in line]
    assert re.match(
        rf"    waited [01][.\d]* s: {server.url.rstrip('/')} was failing; asked again when nobody had", told
    )
    assert "succeeded at attempt 4" == lines[-1]


@pytest.mark.parametrize(
    ("status", "arguments", "expected"),
    [
        (200, (), 0),
        (404, (), 3),
        (503, (), 1),
        (503, ("--method", "POST"), 1),
        (302, (), 0),
        (200, ("enabled=false",), 0),
        (503, ("enabled=false",), 3),
        (503, ("quota=none", "max_attempts=2"), 1),
    ],
)
def test_the_exit_status_says_how_it_ended(
    server: FaultServer, status: int, arguments: tuple[str, ...], expected: int
) -> None:
    """0: it succeeded; 1: it gave up; 3: nothing that a retry would help."""
    server.script(Reply(status))
    result = run(server.url, *arguments)
    assert expected == result.exit_code, result.output


def test_the_plot_ends_with_the_sentence(server: FaultServer) -> None:
    """--plot adds the attempts on a time axis, in plain characters."""
    server.script([Reply(503), Reply(200)])
    *_, failed, succeeded, axis, sentence = run("--plot", server.url).output.splitlines()
    assert re.fullmatch(r"  1 \|#+ *\| 503", failed)
    assert re.fullmatch(r"  2 \| *\.*=+ *\| after [\d.e-]+ s \(backoff\) 200", succeeded)
    assert re.fullmatch(r" +0 s +[\d.e-]+ s", axis)
    assert "succeeded at attempt 2 of 3" == sentence


def test_without_a_quota_none_is_told(server: FaultServer) -> None:
    """The output does not mention tokens."""
    server.script([Reply(503), Reply(200)])
    assert "tokens" not in run(server.url, "quota=none").output


def test_it_sends_what_it_is_told(server: FaultServer) -> None:
    """Method, headers and body."""
    run(server.url, "--method", "PUT", "--header", "X-Mine: 1", "--data", "hello")
    (request,) = server.requests
    assert ("PUT", "1", b"hello") == (request.method, dict(request.headers)["X-Mine"], request.body)


def test_a_url_that_is_none_cannot_be_retried() -> None:
    """A text that is not a URL fails before any attempt."""
    result = run("nonsense")
    assert 3 == result.exit_code
    assert result.output.startswith("nothing was sent: MissingSchema: Invalid URL 'nonsense': No scheme supplied")


def test_a_url_without_its_scheme_gets_the_message_of_requests() -> None:
    """The message names what is wrong, and says nothing of switched-off retries."""
    told = run("127.0.0.1:80").output
    assert told.startswith("nothing was sent: InvalidSchema: No connection adapters were found for '127.0.0.1:80'")
    assert "switched off" not in told


def test_a_failure_without_retries_says_that_they_are_off(server: FaultServer) -> None:
    """With enabled=false an exception is told by its name."""
    server.script([CloseAfterRequest()])
    assert "ended with ConnectionError; retries are switched off\n" == run(server.url, "enabled=false").output


@pytest.mark.parametrize("arguments", [("--method", "BAD METHOD"), ("--header", "X-Mine: \u65e5")])
def test_what_cannot_be_put_on_the_wire_cannot_be_retried(server: FaultServer, arguments: tuple[str, ...]) -> None:
    """``http.client`` refuses it with an exception that is not one of requests; it is told like those."""
    result = run(server.url, *arguments)
    assert (result.exit_code, "Error" in result.output) == (3, True), result.output


def test_a_bad_option_is_bad_usage() -> None:
    """Exit status 2."""
    assert run("http://127.0.0.1:1/", "max_attempts=0").exit_code == 2
