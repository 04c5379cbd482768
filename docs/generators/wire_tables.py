"""The exception of each fault on the wire: all of the catalogue go through an adapter, on a real socket."""

from __future__ import annotations

from collections.abc import Callable

import requests

from requests_smithy_retry import mount
from tests.faults import FaultServer, fault_catalogue

from .reference_tables import table


def raised_by_fault() -> str:
    """By exception class, the faults that a client can know of, but for those that take time."""
    names: dict[str, list[str]] = {}
    for fault in fault_catalogue():
        if fault.outcome != "broken":
            continue
        with FaultServer(default=fault.behaviour) as server, mount(requests.Session(), max_attempts=1) as session:
            try:
                ended = f"a response, {session.get(server.url, timeout=5).status_code}"
            except requests.RequestException as error:
                ended = f"`{type(error).__name__}`"
        names.setdefault(ended, []).append(f"`{fault.name}`")
    return table(("what is raised", "faults"), [(ended, ", ".join(faults)) for ended, faults in names.items()])


BLOCKS: dict[str, Callable[[], str]] = {
    "raised-by-fault": raised_by_fault,
}
"""By name of the block."""
