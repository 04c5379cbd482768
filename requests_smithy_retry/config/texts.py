"""What a text may say that sets an option, in words for who writes variables and command lines; with examples."""

from __future__ import annotations

from typing import Any

ALLOWED = {
    "backoff": "a finite number of seconds (0 or more), or none",
    "quota": "a finite number of tokens (0 or more), payoff, a redis://, rediss:// or unix:// URL (special characters "
    "percent-encoded), or none for no quota",
    "pacing": "announced or off",
    "deadline_header": "a header's name, alone or with seconds or date after a comma, or none",
    "timeout": "seconds above 0 and up to 2147483, two of them with a comma between (to connect, to read), or none",
    "allowed_methods": "names of methods, separated by commas, or none for all methods,",
    "retry_status_codes": "statuses from 100 to 599, separated by commas",
    "telemetry": "log, otel and prometheus, separated by commas,",
}
"""By option; the others say the same of a text as of an object."""

EXAMPLES = {
    "mode": "adaptive",
    "max_attempts": "5",
    "retry_spec": "2.0",
    "backoff": "100ms",
    "max_backoff": "10s",
    "jitter": "none",
    "quota": "redis://cache:6379/0",
    "patience": "10s",
    "max_retry_after": "5min",
    "pacing": "off",
    "operation_timeout": "30",
    "operation_attempt_timeout": "10",
    "deadline_header": "X-Request-Deadline",
    "timeout": "3.05, 27",
    "allowed_methods": "GET, HEAD",
    "retry_status_codes": "429, 503",
    "raise_on_status": "true",
    "enabled": "false",
    "telemetry": "log, otel",
    "aws_config": "my-profile",
}
"""By option, where an example says more than :func:`example_of` can guess."""


def example_of(name: str, default: Any) -> str:
    """Return an example of an option's text."""
    by_kind = {bool: "no" if default is True else "yes"}.get(type(default), "10s")
    return EXAMPLES.get(name, by_kind)
