"""One process of a fleet: makes operations against a service, and says how many retries it made.

``python -m tests.unit.features.redis.worker QUOTA SERVICE_URL OPERATIONS``; with ``THREADS`` after that, it says
"ready", and the threads begin when a line comes. As a WSGI application it does the same for each request, with what
the environment says.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter

import requests

from requests_smithy_retry import mount, retry_history


def new_session(quota: str) -> requests.Session:
    shared = quota if "://" in quota else float(quota)
    options = {} if "://" not in quota else {"patience": 0}
    return mount(requests.Session(), quota=shared, max_attempts=3, initial_backoff=0, **options)


def retries_of(session: requests.Session, service: str, operations: int) -> dict[str, object]:
    retries, why = 0, ""
    for _ in range(operations):
        try:
            history = retry_history(session.get(service))
        except requests.ConnectionError as error:
            history = retry_history(error)
        assert history is not None
        retries += len(history.attempts) - 1
        why = history.sentence
    return {"process": os.getpid(), "retries": retries, "why": why}


def retries_at(session: requests.Session, service: str, operations: int, threads: int):
    """Have threads begin operations at one moment; return how many retries each source of the quota answered."""
    adapter = session.get_adapter(service)
    adapter.strategy.bucket(adapter.scope_of(requests.Request("GET", service).prepare())).acquire(0)  # connects
    sources: Counter[str] = Counter()
    together = threading.Barrier(threads + 1)

    def work() -> None:
        together.wait()
        for _ in range(operations):
            try:
                session.get(service)
            except requests.ConnectionError as error:
                history = retry_history(error)
            assert history is not None
            sources.update(attempt.quota_source for attempt in history.attempts if attempt.quota_source)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    together.wait()
    for worker in workers:
        worker.join()
    return sources


def application_for(quota: str, service: str):
    session = new_session(quota)  # before the fork, with --preload

    def application(environ, start_response):
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(retries_of(session, service, 1)).encode()]

    return application


if "FLEET_QUOTA" in os.environ:
    application = application_for(os.environ["FLEET_QUOTA"], os.environ["FLEET_SERVICE"])

if __name__ == "__main__":
    quota, service, operations, *together = sys.argv[1:]
    session = new_session(quota)
    if together:
        said = retries_at(session, service, int(operations), int(together[0]))
    else:
        said = retries_of(session, service, int(operations))
    sys.stdout.write(json.dumps(said))
