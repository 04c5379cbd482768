"""One row of the table: a client of a service, a short script with it, and the answers of the service."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

LIMIT = 1
"""The time-out in seconds that a script gives its client, where the client takes one."""

Script = Callable[[str], Generator[Any, None, None]]
"""A function of the service's URL that yields the client, and then a plain result of two or three operations."""


@dataclass(frozen=True)
class Row:
    """One client.

    :param package: the distribution's name.
    :param answers: by ``METHOD /path`` (with ``*``); a dict or list is sent as JSON, in which ``URL`` stands for the
        service, a string as text or XML, bytes as they are; a function is called with the request.
    :param line: the statement that mounts ours, in terms of ``client``, ``mount``, ``RetryAdapter`` and ``requests``.
    :param shown: the line as a user writes it, where the script yields options for the client instead of the client.
    :param scheme: ``https``, ``http`` or ``unix``.
    :param host: the only host that the client knows; all connections are led to loopback.
    :param why: the reason why ``run`` leaves some of its requests alone; empty if it reaches all.
    """

    name: str
    package: str
    script: Script
    answers: Mapping[str, Any]
    line: str
    scheme: str = "https"
    host: str = ""
    why: str = ""
    shown: str = ""


ROOMS = ("relatives", "clouds", "data", "developers", "services")
"""The modules of rows."""
ROWS: dict[str, Row] = {}


def sdk(
    package: str, answers: Mapping[str, Any], line: str, *, name: str = "", **facts: str
) -> Callable[[Script], Script]:
    """Register a script as a row; see :class:`Row`."""

    def register(script: Script) -> Script:
        key = name or package
        if key in ROWS:
            raise ValueError(f"there are two rows {key!r}")
        ROWS[key] = Row(key, package, script, answers, line, **facts)
        return script

    return register
