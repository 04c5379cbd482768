"""An operation on a time axis, one row per attempt: as text for terminals, as HTML for notebooks."""

from __future__ import annotations

import html
import re

from ..errors import StopReason
from .history import AttemptRecord, RetryHistory

WIDTH = 30
"""The characters of the axis. A row with its words fits into 80 columns."""

LONGEST = 20
"""The most rows. Of a longer operation, the first and the last attempts are drawn."""

COLOURS = {"#": "#c0504d", "=": "#2a8a4a"}


def as_text(history: RetryHistory) -> str:
    """Return the picture: ``.`` is a wait, ``#`` an attempt that failed, ``=`` one that succeeded."""
    if not history.attempts:
        return history.sentence
    first, last = history.attempts[0], history.attempts[-1]
    begin = first.started - _wait(first)
    length = last.started + (last.duration or 0.0) + history.line_wait - begin
    scale = WIDTH / length if length > 0 else 0.0
    rows, before = [], 0.0
    for item in history.attempts:
        start = max(item.started - begin, before)
        end = start + (item.duration or 0.0)
        mark = "=" if item is last and history.stop_reason is StopReason.SUCCESS else "#"
        rows.append(f"{item.number:>3} |{_bar(before * scale, start * scale, end * scale, mark)}| {_words(item)}")
        before = end
    if history.line_wait:
        rows.append(f"    |{_bar(before * scale, WIDTH, WIDTH, '')}| waited in vain for the service")
    if len(rows) > LONGEST:
        rows[LONGEST // 2 : -LONGEST // 2] = [f"    ({len(rows) - LONGEST} more)"]
    end_of_axis = f"{length:.3g} s"
    return "\n".join([*rows, f"     0 s{end_of_axis:>{WIDTH - 3}}", history.sentence])


def as_html(history: RetryHistory) -> str:
    """Return the picture as preformatted HTML, with the attempts in colour."""

    def coloured(row: re.Match[str]) -> str:
        before, attempt = row.groups()
        colour = COLOURS[attempt[0]]
        return f'{before}<span style="color:{colour};background:{colour}">{attempt}</span>'

    rows = re.sub(r"^( *\d+ \|[ .]*)(#+|=+)", coloured, html.escape(as_text(history)), flags=re.MULTILINE)
    return f"<pre>{rows}</pre>"


def _bar(begin: float, start: float, end: float, mark: str) -> str:
    first = min(round(start), WIDTH - len(mark))  # an attempt of no length at the very end shows as well
    waited = "." * (first - min(round(begin), first))
    sent = mark * max(round(end) - first, 1)
    return f"{waited:>{first}}{sent}".ljust(WIDTH)


def _wait(item: AttemptRecord) -> float:
    return item.delay + item.permit_wait + item.gate_wait


def _words(item: AttemptRecord) -> str:
    waited = f"after {item.line_wait:.3g} s for the service" if item.line_why else item.waits
    return f"{waited.strip()} {item.ending}".lstrip()
