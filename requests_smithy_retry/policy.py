"""Policies of the smithy-kotlin design, and a retry loop for any block of code: see :mod:`.smithy.policy`."""

from .smithy.policy import *  # noqa: F403
