"""The error for a missing extra: it names the library, and the command that installs it."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "library", "said"),
    [
        ("otel", "opentelemetry", "OpenTelemetryListener needs opentelemetry-api: "),
        ("prometheus", "prometheus_client", "PrometheusListener needs prometheus-client: "),
    ],
)
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, module: str, library: str, said: str) -> None:
    """Importing a listener without its library raises an error with the command to run and the library's name."""
    monkeypatch.setitem(sys.modules, library, None)
    for place in (f"requests_smithy_retry.{module}", f"requests_smithy_retry.features.telemetry.{module}"):
        monkeypatch.delitem(sys.modules, place, raising=False)
    with pytest.raises(ImportError) as caught:
        importlib.import_module(f"requests_smithy_retry.{module}")
    assert f"{said}pip install {said.split()[-1].removesuffix(':')}" == str(caught.value)
    assert library == caught.value.name
