"""POSTs over connections that a NAT has forgotten: how many succeed, with plain requests and with `max_idle`.

    python benchmarks/forgotten_paths.py [--quick] [--json FILE]

Ten sessions send a POST through a proxy, wait for 1.3 s, and send another one. The proxy silently drops what comes
over a path that was idle for a second. Exit status 1: one with `max_idle=0.5` failed.
Needs trustme.
"""

from __future__ import annotations

import ssl
import sys
import time
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import command
import requests
import trustme

from requests_smithy_retry import mount
from requests_smithy_retry.testing import FaultProxy, FaultServer, Forget

FORGETS_AFTER, PAUSE, TIMEOUT = 1.0, 1.3, 2.0
WAYS: dict[str, dict[str, Any] | None] = {"plain": None, "ours, max_idle=0.5": {"max_idle": 0.5}}


def succeeded(options: dict[str, Any] | None, sessions: int) -> int:
    """Return how many of the second POSTs were answered."""
    authority, well = trustme.CA(), 0
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)

    def post(session: requests.Session) -> None:
        session.post(server.url, data=b"x", proxies={"https": proxy.url}, verify=False, timeout=TIMEOUT)

    with FaultServer(tls=tls) as server, FaultProxy(Forget(idle=FORGETS_AFTER)) as proxy, ExitStack() as stack:
        made = [stack.enter_context(requests.Session()) for _ in range(sessions)]
        for session in made:
            session.trust_env = False
            if options is not None:
                mount(session, **options)
            post(session)
        time.sleep(PAUSE)
        for session in made:
            with suppress(requests.RequestException):
                post(session)
                well += 1
    return well


def main() -> int:
    """Measure, print, and write what was asked for."""
    options = command.parser(__doc__, "three sessions").parse_args()
    warnings.simplefilter("ignore")
    sessions = 3 if options.quick else 10
    result = {"sessions": sessions, "succeeded": {name: succeeded(way, sessions) for name, way in WAYS.items()}}
    for name, count in result["succeeded"].items():
        print(f"{name:20} {count} of {sessions}")
    command.write(result, options.json)
    return int(result["succeeded"]["ours, max_idle=0.5"] != sessions)


if __name__ == "__main__":
    raise SystemExit(main())
