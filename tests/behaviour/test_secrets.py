"""No planted secret is in any log record, note, history, metric label or span (contract 12)."""

from __future__ import annotations

import json
import logging
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import requests.exceptions

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("prometheus_client")

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    RetryError,
    RetryListener,
    TokenBucket,
    classifier,
    retry_history,
)
from requests_smithy_retry.prometheus import PrometheusListener
from requests_smithy_retry.smithy import SdkHeaders
from requests_smithy_retry.testing import FakeClock
from tests.behaviour.test_otel import Telemetry
from tests.support import Guide, Reply, prepare, read_timeout, scripted

SECRET = "hunter2"
URL = f"https://user:{SECRET}@api.example.com:8443/things;{'p'}?token={SECRET}&{SECRET}=1#{SECRET}"
LEAKY = {
    "Retry-After": SECRET,
    "x-amzn-errortype": SECRET,
    "Set-Cookie": f"session={SECRET}",
    "X-Key": SECRET,
    "Content-Type": f"application/json; boundary={SECRET}",
}
BODY = json.dumps({"__type": SECRET, "message": SECRET}).encode()


def leaky_error() -> requests.exceptions.ConnectionError:
    """The exceptions of requests quote the URL with its query."""
    return requests.exceptions.ConnectionError(f"HTTPSConnectionPool: Max retries exceeded with url: {URL}")


class Talkative(Guide):
    """A foreign strategy whose refusal quotes the error."""

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any:
        raise RetryError(f"gave up on {error} ({error!r})") from error


SCRIPTS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "first try": ({}, (Reply(200, LEAKY, BODY),)),
    "mended": ({}, (Reply(429, LEAKY, BODY), leaky_error(), Reply(200, LEAKY, BODY))),
    "gave up": ({}, (Reply(503, LEAKY, BODY), read_timeout(), Reply(500, LEAKY, BODY))),
    "raised": ({"max_attempts": 1}, (leaky_error(),)),
    "no quota": ({"quota": TokenBucket(0)}, (Reply(503, LEAKY, BODY),)),
    "not retryable": ({}, (Reply(418, LEAKY, BODY),)),
    "hint too long": ({}, (Reply(503, {**LEAKY, "Retry-After": "999999"}, BODY),)),
    "cut": ({"max_attempts": 1}, (Reply(200, LEAKY, BODY, cut=True),)),
    "raise_on_status": ({"raise_on_status": True, "max_attempts": 1}, (Reply(503, LEAKY, BODY),)),
    "scope of one's own": (
        {"scope": lambda request: request.url, "quota": 20},
        (Reply(503, LEAKY, BODY), Reply(503, LEAKY, BODY)),
    ),
    "scope without a permit": (
        {
            "scope": lambda request: request.url,
            "strategy": AdaptiveRetryStrategy(max_permit_wait=0, backoff=0, clock=FakeClock()),
        },
        (Reply(429, LEAKY, BODY),),
    ),
    "a strategy that quotes": ({"strategy": Talkative()}, (leaky_error(),)),
    "adaptive": ({"mode": "adaptive"}, (Reply(429, LEAKY, BODY), Reply(200, LEAKY, BODY))),
}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("method", ["GET", "POST", f"X-{SECRET}"])
def test_no_secret_is_written_anywhere(name: str, method: str, caplog: pytest.LogCaptureFixture) -> None:
    """Userinfo, query, fragment, header values, bodies and texts of exceptions stay where they are."""
    options, script = SCRIPTS[name]
    events: list[Any] = []
    outcomes: list[Any] = []
    look = classifier(lambda outcome: outcomes.append(outcome))
    telemetry, registry = Telemetry(), CollectorRegistry()
    all_ears = SimpleNamespace(**{name: events.append for name in vars(RetryListener) if not name.startswith("_")})
    adapter = scripted(
        *script,
        listeners=[SdkHeaders(), all_ears, telemetry.listener, PrometheusListener(registry=registry)],
        **options,
        **({} if isinstance(options.get("strategy"), AdaptiveRetryStrategy) else {"classifiers": [look]}),
    )
    request = prepare(headers={"Authorization": SECRET, "Idempotency-Key": SECRET}, data=SECRET.encode())
    request.method, request.url = method, URL
    caller = telemetry.tracer_provider.get_tracer("caller").start_as_current_span("caller")
    with caplog.at_level(logging.DEBUG), caller:
        try:
            outcome: Any = adapter.send(request)
        except requests.exceptions.RequestException as error:
            outcome = error
    history = retry_history(outcome)
    spans = [span.to_json() for span in telemetry.spans]
    assert len(spans) == len(adapter.sent) + 1
    records = [record for record in caplog.records if record.name == "requests_smithy_retry"]
    assert records
    written = {
        "events": [*map(repr, events), *map(repr, outcomes)],
        "logs": [record.getMessage() + str(vars(record)) for record in records],
        "notes": getattr(outcome, "__notes__", []),
        "history": [history.explain(), json.dumps(history.to_dict()), repr(history), repr(pickle.dumps(history))],
        "spans": spans if method in ("GET", "POST") else [],
        "metrics": [str(telemetry.reader.get_metrics_data()), generate_latest(registry).decode()],
    }
    if method not in ("GET", "POST"):
        # A method is no secret: logs, events and spans name it as it is, label values do not.
        for place in ("logs", "events"):
            written[place] = [text.replace(method, "") for text in written[place]]
    for place, texts in written.items():
        assert SECRET not in "\n".join(texts), place


def test_the_secrets_are_really_planted() -> None:
    """The test above would be worth nothing if the secret were not in what is sent and answered."""
    assert all(SECRET in text for text in (str(leaky_error()), str(LEAKY), BODY.decode(), URL))
