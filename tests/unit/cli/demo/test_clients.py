"""The client's side of the workload: here in this process, against the server's side on real sockets."""

import io
import json
import os
import random
import re

import pytest

from requests_smithy_retry import RetryConfig
from requests_smithy_retry.cli.demo.clients import (
    AS_LONG,
    AS_OFTEN,
    CLIENTS,
    CROWD_CLIENTS,
    OURS,
    PLAIN,
    end_with,
    main,
    play,
    work,
)
from requests_smithy_retry.cli.demo.plan import FEWEST, FaultScript, digest, make_plan
from requests_smithy_retry.testing import CloseAfterRequest, FaultServer, Reply
from requests_smithy_retry.testing.clock import FakeClock

PLAN = make_plan(1, FEWEST)


@pytest.fixture(autouse=True)
def _same_chance_afterwards():
    state = random.getstate()
    yield
    random.setstate(state)


def job(client, server, first=0):
    return {"client": client, "url": server.url, "seed": 1, "operations": FEWEST, "first": first}


def statuses(events):
    """Return the status of each fault, or the exception's name."""
    ends = [event for event in events if "end" in event]
    return {PLAN[event["end"]].fault.name: event["status"] or event["error"] for event in ends}


def test_plain_requests_reports_what_it_met():
    """Each operation has a begin and an end, with the status and hash, or the exception, that the client met."""
    events = []
    with FaultServer(FaultScript(PLAN, 0.1)) as server:
        work(events.append, **job("requests", server))
    assert [("begin", operation.number) for operation in PLAN] == [
        ("begin", event["begin"]) for event in events if "begin" in event
    ]
    met = statuses(events)
    assert {
        "well": 200,
        "503": 503,
        "429": 429,
        "reset": "ConnectionError",
        "close": "ConnectionError",
        "chunk-cut": "ChunkedEncodingError",
        "stall": "ReadTimeout",
        "generator-503": 503,
        "outage": "ConnectionError",
        "day": 503,
    }.items() <= met.items()
    well = next(operation for operation in PLAN if operation.fault.name == "well")
    assert [digest(well.download())] == [event["body"] for event in events if event.get("end") == well.number]


@pytest.mark.real_time
def test_our_adapter_rides_through_and_sends_nothing_wrong():
    """RetryAdapter gets the good answer to all but a generator, which it sends once, and the day, which it declines.

    Every upload that the server takes as good has the hash that the client told before it sent.
    """
    events = []
    script = FaultScript(PLAN, 0.3)
    with FaultServer(script) as server:
        work(events.append, **job("RetryAdapter", server))
    assert {"generator-503": 503, "day": 503} == {
        fault: status for fault, status in statuses(events).items() if status != 200
    }
    for event in events:
        if "begin" in event and PLAN[event["begin"]].fault.upload in ("bytes", "file"):
            assert [event["sent"]] == script.accepted[event["begin"]]
    generator = next(operation for operation in PLAN if operation.fault.upload == "generator")
    assert (1, []) == (script.seen[generator.number], script.accepted[generator.number])


def test_it_can_begin_later():
    """A child that takes over begins with the operation it is told."""
    events = []
    with FaultServer(FaultScript(PLAN, 0.1)) as server:
        work(events.append, **job("requests", server, first=FEWEST - 1))
    assert [FEWEST - 1] == [event["begin"] for event in events if "begin" in event]


@pytest.mark.parametrize("client", CROWD_CLIENTS, ids=lambda client: client.name)
def test_each_client_is_set_up_as_it_says(client):
    """The adapter that is mounted is the one that the report shows as set-up."""
    adapter = client.adapter()
    assert type(adapter).__name__ in (client.setup.partition("(")[0], "HTTPAdapter")
    total = re.search(r"Retry\((\d)", client.setup)
    assert adapter.max_retries.total == (int(total[1]) if total else 0 if client is PLAIN else 2)


def test_the_comparison_is_fair():
    """Ours has no option; one Retry has as many attempts, the other one goes on for about as long."""
    ours = OURS.adapter()
    assert ("RetryAdapter()", RetryConfig()) == (OURS.setup, ours.retry_config)
    assert ours.retry_config.max_attempts == 1 + AS_OFTEN.adapter().max_retries.total
    waits = sum(AS_LONG.adapter().max_retries.backoff_factor * 2**retry for retry in range(1, 5))
    assert ours.retry_config.patience <= waits <= 2 * ours.retry_config.patience
    assert set(CLIENTS) < set(CROWD_CLIENTS)


def test_it_ends_when_its_parent_does():
    """The end of the pipe ends the process, not what comes through it."""
    read, write = os.pipe()
    codes = []
    thread = end_with(read, codes.append)
    os.write(write, b"still here")
    thread.join(0.05)
    assert [] == codes
    os.close(write)
    thread.join(60)
    os.close(read)
    assert [1] == codes


def test_its_program_writes_an_event_a_line():
    """The child writes lines of JSON, and ends when the pipe on its standard input is closed."""
    read, write = os.pipe()
    codes, stdout = [], io.StringIO()
    with FaultServer(FaultScript(PLAN, 0.1)) as server:
        watcher = main(json.dumps(job("requests", server, first=FEWEST - 1)), read, stdout, codes.append)
    events = [json.loads(line) for line in stdout.getvalue().splitlines()]
    assert [["begin", "sent"], ["body", "end", "error", "seconds", "status"]] == [sorted(event) for event in events]
    os.close(write)
    watcher.join(60)
    os.close(read)
    assert [1] == codes


@pytest.mark.parametrize(
    ("client", "script", "done"),
    [(PLAIN, Reply(200), True), (PLAIN, Reply(503), False), (PLAIN, CloseAfterRequest(), False), (OURS, Reply(), True)],
)
def test_each_operation_is_told_with_what_came_of_it(client, script, done):
    """Each operation begins at its own time, however the others end."""
    events = []
    with FaultServer(script) as server:
        play(events.append, client.name, server.url, rate=1000.0, count=4, users=2, clock=FakeClock())
    assert [(number / 1000, done) for number in range(4)] == sorted((event["at"], event["done"]) for event in events)
    assert {"/0", "/1", "/2", "/3"} == {request.path for request in server.requests}


@pytest.mark.real_time
def test_the_program_of_a_scene_writes_an_event_a_line():
    """A job that has a rate is that of a scene."""
    read, write = os.pipe()
    codes, stdout = [], io.StringIO()
    with FaultServer() as server:
        job = {"client": "requests", "url": server.url, "rate": 2.0, "count": 1, "users": 1}
        watcher = main(json.dumps(job), read, stdout, codes.append)
    event = json.loads(stdout.getvalue())
    assert (0.0, True) == (event["at"], event["done"])
    assert {"at", "done", "seconds"} == set(event)
    os.close(write)
    watcher.join(60)
    os.close(read)
    assert [1] == codes
