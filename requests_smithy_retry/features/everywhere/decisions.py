"""Which of a program's adapters get retries, and which are left alone, and why (contract 10.5)."""

from __future__ import annotations

import os
import traceback
from typing import Any, NamedTuple

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from ...checks import safe_repr
from ...config.retry_config import RetryConfig
from ...config.sources import MOUNTED_VALUES as MOUNTED
from ..urllib3_retry.translation import methods_of, overridden, own_methods

METHODS, STATUSES = "SMITHY_RETRY_ALLOWED_METHODS", "SMITHY_RETRY_RETRY_STATUS_CODES"
RISKY = frozenset({"PATCH", "POST"})
"""The common methods that are not sent again by default."""


class Decision(NamedTuple):
    """The decision whether an adapter gets retries.

    :param sentence: as that of an :class:`AdapterKind`.
    :param needed: as that of an :class:`AdapterKind`.
    :param is_translated: its own ``max_retries`` is translated, as a policy of its own.
    :param ignored: its own ``max_retries`` if that is ignored; else 0.
    """

    sentence: str
    needed: str | None = None
    is_translated: bool = False
    ignored: Any = 0


def decide(adapter: HTTPAdapter, name: str, retries: Any, mounted: str) -> Decision:
    """Decide whether an adapter that is not of our class gets retries.

    :param name: its name in sentences.
    :param retries: its ``max_retries``.
    :param mounted: which adapters get retries.
    """
    has_own_send = getattr(adapter.send, "__func__", None) is not HTTPAdapter.send
    is_plain = retries_nothing(retries)
    if has_own_send:
        why, needed = ", which has a send of its own and may retry by itself", "replace"
    elif is_plain:
        why, needed = ", which mounted='plain' would have retry", "plain"
    else:
        why, needed = _why_not_plain(retries)
    if MOUNTED.index(needed) > MOUNTED.index(mounted):
        return Decision(name + why, needed)
    ignored = 0 if is_plain or mounted != "replace" else retries
    said = "" if is_plain else f" with {display_retries(retries)}{', which is ignored' if ignored != 0 else ''}"
    sentence = f"{name}{said}{', around its own send' if has_own_send else ''}"
    return Decision(sentence, None, mounted != "replace" and not is_plain, ignored)


def no_longer_retried(policy: RetryConfig, ignored: Any) -> str:
    """Return the clause about methods and statuses that a ``Retry`` sent again, and the policy in its place does not.

    It is empty if there are none.
    """
    if not isinstance(ignored, Retry):
        return ""
    allowed, own = policy.allowed_methods, methods_of(ignored)
    lost = [] if allowed is None else sorted((RISKY if own is None else RISKY & own) - {*allowed})
    clauses = []
    if lost:
        value = "all" if own is None else ",".join(sorted({*(allowed or ()), *lost}))
        clauses.append(f"sent {' and '.join(lost)} again, and the policy does not: {METHODS}={value} brings it back")
    known = {*policy.retry_status_codes}
    codes = sorted({each for each in ignored.status_forcelist if each in range(100, 600)} - known)
    if codes:
        value = ",".join(map(str, sorted({*codes, *known})))
        named = " and ".join(map(str, codes))
        clauses.append(f"retried after {named}, and the policy does not: {STATUSES}={value} brings it back")
    return "; it ".join(clauses)


def resend_risk(policy: RetryConfig) -> str:
    """Return the sentence about methods that a policy sends again whatever the outcome; empty if there are none."""
    allowed, source = policy.allowed_methods, policy.source("allowed_methods")
    methods = sorted(RISKY if allowed is None else RISKY & {*allowed}) if policy.enabled else []
    said = f"{' and '.join(methods)} requests are sent again even if the server may have applied them, by {source}"
    return said if methods else ""


def calling_line() -> str:
    """Return the line of the program or of an SDK that makes a session or mounts an adapter, for a dry run."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    inner = tuple(os.path.join(folder, "") for folder in (package, os.path.dirname(requests.__file__)))
    frame = next(each for each in reversed(traceback.extract_stack()) if not each.filename.startswith(inner))
    name = frame.filename.rpartition(f"site-packages{os.sep}")[2].removeprefix(os.path.join(os.getcwd(), ""))
    return f"{name}:{frame.lineno}"


def retries_nothing(value: Any) -> bool:
    """Return True for a ``max_retries`` that neither retries, nor raises for a status, nor has methods of its own."""
    if isinstance(value, Retry):
        return value.total in (0, False) and not value.status_forcelist and not own_methods(value)
    return value in (0, False)


def _why_not_plain(retries: Any) -> tuple[str, str]:
    found = overridden(retries) if isinstance(retries, Retry) else []
    if found:
        return f" with {display_retries(retries)}, whose {found[0]} cannot be translated", "replace"
    return f" with {display_retries(retries)}, which mounted='all' would translate", "all"


def display_retries(retries: Any) -> str:
    """Return a ``max_retries`` for a sentence: ``Retry(3)``."""
    if not isinstance(retries, Retry):
        return f"max_retries={safe_repr(retries)}"
    kind = type(retries)
    package = "" if kind is Retry else f"{kind.__module__}."
    return f"{package}{kind.__qualname__}({safe_repr(retries.total)})"
