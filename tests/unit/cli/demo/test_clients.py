"""The client's side of the workload: here in this process, against the server's side on real sockets."""

import pickle
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


def works(client, server, first=0):
    """Do a client's work, and return the hash of the upload and the end of each operation."""
    events = []
    work(events.append, client, server.url, 1, FEWEST, first)
    return list(zip(events[::2], events[1::2], strict=True))


def statuses(events):
    """Return the status of each fault; None after an exception."""
    return {operation.fault.name: status for operation, (_, (_, status, _)) in zip(PLAN, events, strict=True)}


def test_plain_requests_reports_what_it_met():
    """Each operation has a begin and an end, with the status and hash that the client met; no status if it raised."""
    with FaultServer(FaultScript(PLAN, 0.1)) as server:
        events = works(PLAIN, server)
    assert [(digest(operation.upload()),) for operation in PLAN] == [begin for begin, _ in events]
    assert {
        "well": 200,
        "503": 503,
        "429": 429,
        "reset": None,
        "close": None,
        "chunk-cut": None,
        "stall": None,
        "generator-503": 503,
        "outage": None,
        "day": 503,
    }.items() <= statuses(events).items()
    well = next(operation for operation in PLAN if operation.fault.name == "well")
    assert digest(well.download()) == events[well.number][1][2]


@pytest.mark.real_time
def test_our_adapter_rides_through_and_sends_nothing_wrong():
    """RetryAdapter gets the good answer to all but a generator, which it sends once, and the day, which it declines.

    Every upload that the server takes as good has the hash that the client told before it sent.
    """
    script = FaultScript(PLAN, 0.3)
    with FaultServer(script) as server:
        events = works(OURS, server)
    assert {"generator-503": 503, "day": 503} == {
        fault: status for fault, status in statuses(events).items() if status != 200
    }
    for operation, ((sent,), _) in zip(PLAN, events, strict=True):
        if operation.fault.upload in ("bytes", "file"):
            assert [sent] == script.accepted[operation.number]
    generator = next(operation for operation in PLAN if operation.fault.upload == "generator")
    assert (1, []) == (script.seen[generator.number], script.accepted[generator.number])


def test_it_can_begin_later():
    """A child that takes over begins with the operation it is told."""
    with FaultServer(FaultScript(PLAN, 0.1)) as server:
        assert 1 == len(works(PLAIN, server, first=FEWEST - 1))
        assert [PLAN[-1].path] == [request.path for request in server.requests]


@pytest.mark.parametrize("client", CROWD_CLIENTS, ids=lambda client: client.name)
def test_each_client_is_set_up_as_it_says(client):
    """The adapter that is mounted, in a process of its own, is the one that the report shows as set-up."""
    adapter = pickle.loads(pickle.dumps(client)).adapter()
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


@pytest.mark.parametrize(
    ("client", "script", "done"),
    [(PLAIN, Reply(200), True), (PLAIN, Reply(503), False), (PLAIN, CloseAfterRequest(), False), (OURS, Reply(), True)],
)
def test_each_operation_is_told_with_what_came_of_it(client, script, done):
    """Each operation begins at its own time, however the others end."""
    events = []
    with FaultServer(script) as server:
        play(events.append, client, server.url, rate=1000.0, count=4, users=2, clock=FakeClock())
    assert [(number, done) for number in range(4)] == sorted((number, is_done) for number, is_done, _ in events)
    assert {"/0", "/1", "/2", "/3"} == {request.path for request in server.requests}
