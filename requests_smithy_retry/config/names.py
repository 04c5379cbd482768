"""The nearest option for a name that is none: a misspelt one, or the name that another library gives to it."""

from __future__ import annotations

from collections.abc import Collection

from ..checks import suggestion

WORDS = {
    "max_attempts": "attempts max_retries max_tries retries total total_max_attempts connect read status other "
    "stop stop_after_attempt",
    "operation_timeout": "deadline max_delay max_time stop_after_delay stop_before_delay total_timeout",
    "timeout": "connect_timeout read_timeout",
    "initial_backoff": "backoff backoff_factor base factor interval wait wait_exponential wait_fixed wait_gen "
    "wait_initial wait_random_exponential",
    "max_backoff": "backoff_max max_value max_wait wait_max",
    "jitter": "backoff_jitter wait_jitter",
    "max_retry_after": "respect_retry_after respect_retry_after_header retry_after_max",
    "retry_status_codes": "retry_on retry_on_status retry_status retry_statuses status_codes status_forcelist statuses",
    "classifiers": "exception giveup on retry retry_if_exception_type retry_on_exception retry_on_result",
    "allowed_methods": "method_whitelist methods retry_methods retryable_methods",
    "listeners": "after before before_sleep on_backoff on_giveup on_retry on_success retry_error_callback",
    "mode": "retry_mode",
}
"""Each option by the names of urllib3, tenacity, stamina, backoff, botocore and httpx-retries."""

INSTEAD = {
    "rate_limiter": "give strategy=AdaptiveRetryStrategy(rate_limiter=...)",
    "max_permit_wait": "give strategy=AdaptiveRetryStrategy(max_permit_wait=...)",
    "models": "give classifiers=[SmithyModelClassifier([model.for_endpoint(url)])]",
    "error_parser": "give classifiers=[ModeledAsRetryableClassifier(function)]",
    "default_classifiers": "give classifiers=only(...), which are asked in place of the default ones",
    "sdk_headers": "give listeners=[SdkHeaders()]",
    "idempotency_header": "the header is Idempotency-Key",
}
"""What to do in place of an option that there was once."""

MEANT = {word: name for name, words in WORDS.items() for word in words.split()}


def nearest(name: str, known: Collection[str]) -> str:
    """Return the hint that follows "there is no option of that name": what is known, or what was meant.

    >>> nearest("status_forcelist", ["retry_spec", "retry_status_codes"])
    "did you mean 'retry_status_codes'?"
    """
    if name in INSTEAD:
        return INSTEAD[name]
    meant = MEANT.get(name)
    return f"did you mean {meant!r}?" if meant in known else suggestion(name, known, repr)
