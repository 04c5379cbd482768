"""For AWS: its error codes (contract 3.4), the settings of its SDKs (contract 10.2), and their headers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..classifiers.actions import NO_ACTION, ErrorKind, RetryAction, RetryIndicated, RetryReason
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import RetryClassifier, RetryClassifierPriority
from ..clock import Clock
from ..config.options import source_of
from ..config.retry_config import RetryConfig
from ..config.sources import BOOLEANS, Found, parse_text
from ..core.port import Feature
from ..core.server_hints import AMZ_HEADER, longest_in, parse_integer
from ..errors import RetryConfigError, RetryConfigWarning
from ..observing.events import BeforeAttempt, RetryListener
from .error_code import error_code

if TYPE_CHECKING:
    from configparser import RawConfigParser

THROTTLING_CODES = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottledException",
        "RequestThrottled",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "SlowDown",
        "PriorRequestNotComplete",
        "EC2ThrottledException",
    }
)
"""The codes of throttling, ``PriorRequestNotComplete`` included, which some lists call transient."""

TRANSIENT_CODES = frozenset({"RequestTimeout", "RequestTimeoutException"})
"""The codes of a server that did not receive the whole request in time."""


class AwsErrorCodeClassifier:
    """Classifies known AWS error codes as throttling or transient errors; no opinion on any other.

    Only responses of 400 and above are parsed, at most 64 KiB of the body, and no body with ``stream``.
    ``x-amz-retry-after`` becomes the floor of the delay, also if an earlier classifier indicated the retry; by
    itself it indicates nothing (contract 3.4).
    """

    name = "AwsErrorCodeClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.aws_error_code_classifier()

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the code in the header or in the body."""
        response = outcome.response
        if response is None or response.status_code < 400:
            return NO_ACTION
        text = response.headers.get(AMZ_HEADER)
        milliseconds = longest_in(text, parse_integer) if isinstance(text, str) else None
        floor, source = (None, None) if milliseconds is None else (milliseconds / 1000, AMZ_HEADER)
        code = error_code(response.headers, outcome.read_prefix)
        if code in THROTTLING_CODES:
            return RetryAction.retry_indicated(RetryReason(ErrorKind.THROTTLING, floor, source, not_applied=True))
        said = previous.reason.kind if isinstance(previous, RetryIndicated) else None
        if code in TRANSIENT_CODES and said is not ErrorKind.THROTTLING:  # a 429 stays what it is, as in botocore
            return RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, floor, source))
        if floor is not None and isinstance(previous, RetryIndicated):
            return RetryIndicated(replace(previous.reason, retry_after=floor, retry_after_source=source))
        return NO_ACTION


class AwsErrorCodes(Feature):
    """The classifier of AWS error codes, as one of the default ones."""

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:
        return (AwsErrorCodeClassifier(),)


def feature(config: RetryConfig, clock: Clock) -> AwsErrorCodes:
    return AwsErrorCodes()


VARIABLES = {"AWS_MAX_ATTEMPTS": "max_attempts", "AWS_RETRY_MODE": "mode", "AWS_NEW_RETRIES_2026": "retry_spec"}

KEYS = {"max_attempts": "max_attempts", "retry_mode": "mode"}


def from_aws_settings(
    environ: Mapping[str, str], aws_config: bool | str, *, source: str, settled: Container[str]
) -> Found:
    """Return the options that the AWS settings set, except settled ones; ``aws_config`` came from ``source``."""
    section, profile = _profile(environ, aws_config, source)
    found = [(KEYS[key], section[key], profile) for key in KEYS if key in section]
    # Later ones win: the variables beat the profile.
    found += [(VARIABLES[name], environ.get(name, ""), source_of(name)) for name in VARIABLES]
    winners = {
        option: (text.strip(), where) for option, text, where in found if text.strip() != "" and option not in settled
    }
    return {option: (_parse(option, text, where), where) for option, (text, where) in winners.items()}


def _parse(option: str, text: str, source: str) -> Any:
    if option == "mode" and text.lower() == "legacy":  # the mode from before the standard one
        warnings.warn(
            f"retry mode 'legacy' (from {source}) is not one of ours: 'standard' is used",
            RetryConfigWarning,
            stacklevel=2,
        )
        return "standard"
    if option == "retry_spec":
        is_new = BOOLEANS.get(text.lower())
        if is_new is None:
            raise RetryConfigError(option, text, source, "true (2.1) or false (2.0) is allowed")
        return "2.1" if is_new else "2.0"
    return parse_text(option, text, source)


def _profile(environ: Mapping[str, str], aws_config: bool | str, asked_by: str) -> tuple[Mapping[str, str], str]:
    """Return the profile's settings and their name as a source. An absent default profile, or file, is normal."""
    if isinstance(aws_config, str):
        asked = aws_config.strip()
    else:
        asked, asked_by = environ.get("AWS_PROFILE", "").strip(), source_of("AWS_PROFILE")
    profile = asked or "default"
    named_file = environ.get("AWS_CONFIG_FILE", "").strip()
    shown = named_file or "~/.aws/config"
    source = f"profile {profile!r} in {shown}"
    sections = _read(shown, required=named_file != "")
    if profile in sections:
        return sections[profile], source
    if asked and asked != "default":
        there = ", ".join(map(repr, sections)) or "none"
        raise RetryConfigError(
            "aws_config", asked, asked_by, f"the name of a profile in {shown} is allowed; it has {there}"
        )
    return {}, source


def _read(shown: str, *, required: bool) -> dict[str, Mapping[str, str]]:
    """Return the profiles of a file by name; an empty dict if the file is absent and not required."""
    import configparser  # rarely needed

    path = os.path.expanduser(shown)
    parser = configparser.RawConfigParser(strict=False, default_section="\0", inline_comment_prefixes=("#", ";"))
    try:
        with open(path, encoding="utf-8-sig") as file:
            parser.read_file(file, shown)
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        if isinstance(error, FileNotFoundError) and not required:
            return {}
        option, source = (
            ("AWS_CONFIG_FILE", source_of("AWS_CONFIG_FILE")) if required else ("aws_config", "its default")
        )
        why = str(error).replace("\n", " ")
        raise RetryConfigError(option, shown, source, f"a readable file of profiles is allowed ({why})") from None
    return _profiles(parser)


def _profiles(parser: RawConfigParser) -> dict[str, Mapping[str, str]]:
    """Return ``[default]`` and each ``[profile x]``, no other section. ``[profile default]`` beats ``[default]``."""
    profiles: dict[str, Mapping[str, str]] = {}
    for title in parser.sections():
        words = title.split(None, 1)
        settings = dict(parser.items(title))
        if title.strip() == "default":
            profiles.setdefault("default", settings)
        elif len(words) == 2 and words[0] == "profile":
            profiles[words[1].strip().strip("\"'")] = settings
    return profiles


INVOCATION_ID = "amz-sdk-invocation-id"
REQUEST = "amz-sdk-request"


class SdkHeaders(RetryListener):
    """Sets ``amz-sdk-invocation-id`` (one UUID per operation) and ``amz-sdk-request: attempt=N; max=M``.

    The caller's own invocation id is kept. ``max`` is left out where no ``max_attempts`` is given.

    >>> from requests_smithy_retry import RetryAdapter, SdkHeaders
    >>> adapter = RetryAdapter(listeners=[SdkHeaders()])
    """

    def before_attempt(self, event: BeforeAttempt, /) -> None:
        """Set the headers on this attempt's copy of the request."""
        headers = event.request.headers
        headers.setdefault(INVOCATION_ID, event.operation.invocation_id)
        most = event.operation.max_attempts
        headers[REQUEST] = f"attempt={event.number}" + ("" if most is None else f"; max={most}")
