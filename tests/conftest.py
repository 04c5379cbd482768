"""Rules for every test: it sleeps for real only if marked ``real_time``, and the environment is clean."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import sysconfig
import time
from collections.abc import Iterator

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


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts this in the background has Ctrl-C ignored, by programs that tests start as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Have tests/behaviour run with another strategy in the place of the built-in one."""
    parser.addoption("--strategy", choices=("class", "subclass", "wrapper"), default="class")


def pytest_configure(config: pytest.Config) -> None:
    """On a build without the GIL, ignore that the collector finalizes what a dropped response reads from before it."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        dropped = r"Exception ignored in. <[\w.]+\.(CheckedResponse|HTTPResponse|socket)\b"
        config.addinivalue_line("filterwarnings", f"ignore:{dropped}:pytest.PytestUnraisableExceptionWarning")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Measure no coverage in a process that only hands tests to workers."""
    measured = sys.modules["coverage"].Coverage.current() if "coverage" in sys.modules else None
    if measured is not None and session.config.getoption("numprocesses", None):
        measured.stop()


def pytest_collection_finish() -> None:
    """Spare each collection of garbage a look at what was imported and collected, which is there to the end."""
    gc.collect()
    if hasattr(gc, "freeze"):  # PyPy has none
        gc.freeze()


_sleep = time.sleep
_sleeping: list[bool] = [True]


def refuse_to_sleep(seconds: float) -> None:
    """Stand in for `time.sleep`; a module imported meanwhile keeps it, and sleeps in tests that may."""
    if not _sleeping[0]:
        raise AssertionError(f"a test slept {seconds} s for real: give it a FakeClock, or mark it real_time")
    _sleep(seconds)


@pytest.fixture(autouse=True)
def _no_real_sleep(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    _sleeping[0] = request.node.get_closest_marker("real_time") is not None
    if not _sleeping[0]:
        monkeypatch.setattr(time, "sleep", refuse_to_sleep)
    yield
    _sleeping[0] = True


@pytest.fixture(autouse=True)
def _nothing_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each test be warned, whichever test was warned of the same before."""
    for name in ("config.options._warned", "core.time_limits._warned"):
        monkeypatch.setattr(f"requests_smithy_retry.{name}", {})


@pytest.fixture(autouse=True)
def _warnings_are_logged() -> None:
    """Undo what the workers of task queues, and examples of pages, do to the logging of the whole process."""
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("requests_smithy_retry").setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    proxies = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
    for name in tuple(os.environ):
        if name.startswith(("SMITHY_RETRY_", "AWS_")) or name.lower() in proxies:
            monkeypatch.delenv(name)
