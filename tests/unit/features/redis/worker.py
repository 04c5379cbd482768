"""One process of a fleet: makes operations against a service, and says how many retries it made.

``python -m tests.unit.features.redis.worker QUOTA SERVICE_URL OPERATIONS``.
"""

from __future__ import annotations

import json
import os
import sys

import requests

from requests_smithy_retry import mount, retry_history


def new_session(quota: str) -> requests.Session:
    return mount(requests.Session(), quota=quota, max_attempts=3, backoff=0, patience=0)


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


if __name__ == "__main__":
    quota, service, operations = sys.argv[1:]
    sys.stdout.write(json.dumps(retries_of(new_session(quota), service, int(operations))))
