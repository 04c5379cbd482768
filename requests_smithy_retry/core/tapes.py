"""Tapes of vcrpy and betamax (contract 2.8): the end of a tape is no outcome of the server."""

from __future__ import annotations

from requests import Response

TAPES = frozenset({"betamax", "vcr"})
"""The packages that record answers in a test and play them later."""
END_OF_TAPE = (
    "the tape has no answer to a retry; requests_smithy_retry.testing.retries_disabled() plays it without retries"
)


def is_of_a_tape(thing: object) -> bool:
    """Return True for what a tape plays, and for the error of one that has no answer."""
    return type(thing).__module__.partition(".")[0] in TAPES


def is_played(response: Response | None) -> bool:
    """Return True for an answer that came from a tape."""
    return is_of_a_tape(getattr(getattr(response, "raw", None), "_original_response", None))
