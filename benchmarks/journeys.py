"""Count the files that one call passes through, and the moves between them: ``python benchmarks/journeys.py``.

A *file* is one whose Python code ran; a *move* is a call into another file of the same library. One retry (a 503, then
a 200), a first-try success, and the making of an adapter are followed, each warm, on loopback, by the machine's
clock; urllib3's ``Retry``, tenacity and stamina are followed around the same retry. With
``--moves``, the moves of one retry are listed instead.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import requests
import stamina
import tenacity
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

import requests_smithy_retry
from requests_smithy_retry import RetryAdapter, mount
from requests_smithy_retry.testing import FaultServer, Reply


class Journey:
    """Follows calls into the files of one package.

    :param package: the package, or one module of it.
    """

    def __init__(self, package: Any) -> None:
        path = Path(package.__file__)
        self._root = str(path.parent if path.name == "__init__.py" else path)
        self.files: set[str] = set()
        self.moves = 0
        self.listed: list[str] = []

    def follow(self, walk: Callable[[], Any]) -> dict[str, int]:
        """Run a function, and return the number of files and of moves."""
        sys.setprofile(self._note)
        try:
            walk()
        finally:
            sys.setprofile(None)
        return {"files": len(self.files), "moves": self.moves}

    def _note(self, frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG002
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(self._root):
            return
        self.files.add(name)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(self._root):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != name:
            self.moves += 1
            self.listed.append(f"{self._place(caller)}:{caller.f_lineno} -> {self._place(frame)}")

    def _place(self, frame: FrameType) -> str:
        return f"{frame.f_code.co_filename.removeprefix(self._root).lstrip('/')} {frame.f_code.co_name}"


def warm(adapter: HTTPAdapter, url: str, calls: int) -> requests.Session:
    """Return a session with an adapter, after some calls, so that nothing is imported on the way."""
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", adapter)
    for _ in range(calls):
        session.get(url)
    return session


def moves_of_one_retry() -> list[str]:
    """Return the moves of a 503 and then a 200, each with both places."""
    with FaultServer([Reply(503), Reply(200)] * 2) as failing:
        url = failing.url
        session, journey = warm(RetryAdapter(), url, 1), Journey(requests_smithy_retry)
        journey.follow(lambda: session.get(url))
    return journey.listed


def journeys() -> dict[str, dict[str, int]]:
    """Return files and moves by journey."""
    wait = {"wait_initial": 0, "wait_max": 0, "wait_jitter": 0}
    of_urllib3 = Retry(3, status_forcelist=[503], backoff_factor=0)
    mount(requests.Session())
    with FaultServer([Reply(503), Reply(200)] * 8) as failing, FaultServer() as well:
        failing_url, well_url = failing.url, well.url
        retried = warm(RetryAdapter(), failing_url, 1)
        healthy = warm(RetryAdapter(), well_url, 2)
        plain = warm(HTTPAdapter(), failing_url, 2)

        def once() -> None:
            if plain.get(failing_url).status_code >= 500:
                raise ConnectionError

        return {
            "one retry": Journey(requests_smithy_retry).follow(lambda: retried.get(failing_url)),
            "a first-try success": Journey(requests_smithy_retry).follow(lambda: healthy.get(well_url)),
            "an adapter": Journey(requests_smithy_retry).follow(RetryAdapter),
            "one retry by stamina": Journey(stamina).follow(lambda: stamina.retry(on=ConnectionError, **wait)(once)()),
            "one retry by tenacity": Journey(tenacity).follow(lambda: tenacity.retry()(once)()),
            "one retry by urllib3": Journey(urllib3.util.retry).follow(
                lambda: of_urllib3.increment("GET", "/", urllib3.HTTPResponse(status=503)).sleep()
            ),
        }


if __name__ == "__main__":
    json.dump(moves_of_one_retry() if "--moves" in sys.argv else journeys(), sys.stdout, indent=2)
    sys.stdout.write("\n")
