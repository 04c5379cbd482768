"""Rules for every test: it sleeps for real only if marked ``real_time``, and the environment is clean."""

from __future__ import annotations

import gc
import os
import time

import pytest

try:
    import hypothesis
except ImportError:  # a bare environment runs the tests that do without
    pass
else:
    # A loaded machine is slow at drawing as well; how long an example takes is not what these tests are about.
    hypothesis.settings.register_profile(
        "suite", max_examples=50, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("suite")

pytest_plugins = ["requests_smithy_retry_pytest"]

if "PYTEST_XDIST_WORKER" in os.environ:
    # This process is measured; the programs that tests start are not, which would take them long.
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)


def pytest_collection_finish() -> None:
    """Spare each collection of garbage a look at what was imported and collected, which is there to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_real_sleep(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("real_time") is not None:
        return

    def refuse(seconds: float) -> None:
        raise AssertionError(f"a test slept {seconds} s for real: give it a FakeClock, or mark it real_time")

    monkeypatch.setattr(time, "sleep", refuse)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    proxies = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
    for name in tuple(os.environ):
        if name.startswith(("SMITHY_RETRY_", "AWS_")) or name.lower() in proxies:
            monkeypatch.delenv(name)
