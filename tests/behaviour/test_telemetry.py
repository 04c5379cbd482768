"""Retries seen without a changed line: with ``run``, in its children, and with ``opentelemetry-instrument``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk")

from requests_smithy_retry.testing import FaultServer, Reply
from tests.support import python

pytestmark = [pytest.mark.real_time, pytest.mark.once]
PROGRAM = """\
import multiprocessing, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

def line(span):
    resent, why = span.attributes.get("http.request.resend_count"), span.attributes.get("requests_smithy_retry.reason")
    return f"{span.name} {resent} {why}\\n"

def get(url):
    import requests
    return requests.get(url).status_code

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=line)))
trace.set_tracer_provider(provider)

if __name__ == "__main__":
    how, url = sys.argv[1:]
    if how == "here":
        get(url)
    else:
        with multiprocessing.get_context(how).Pool(1) as pool:
            pool.map(get, [url])
"""
SEEN = ["GET None None", "GET 1 503"]


def run(folder: Path, *arguments: str, **environ: str) -> tuple[list[str], str]:
    """Run the program against a service that answers 503 and then 200; return its spans and its standard error."""
    (folder / "program.py").write_text(PROGRAM)
    with FaultServer([Reply(503), Reply(200)]) as server:
        done = python(*arguments, server.url, cwd=folder, NO_PROXY="*", **environ)
    assert 0 == done.returncode, done.stderr
    return [line for line in done.stdout.splitlines() if "requests" not in line], done.stderr


OURS = ("-m", "requests_smithy_retry", "run", "program.py")


@pytest.mark.parametrize("how", ["here", "fork", "spawn"])
def test_run_shows_each_retry(tmp_path: Path, how: str) -> None:
    """A span with the count and the reason, and a line on standard error, in this process and in its children."""
    spans, said = run(tmp_path, *OURS, how, SMITHY_RETRY_TELEMETRY="otel,log")
    assert SEEN == spans
    assert 1 == said.count("requests_smithy_retry: retry 1 of GET http://127.0.0.1")


@pytest.mark.parametrize("how", ["here", "fork", "spawn"])
def test_opentelemetry_instrument_shows_each_retry(tmp_path: Path, how: str) -> None:
    """No variable is needed: the instrumentor is found by its entry point."""
    command = str(Path(sys.executable).with_name("opentelemetry-instrument"))
    spans, _ = run(tmp_path, command, sys.executable, *OURS, how, OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="requests")
    assert SEEN == spans


def test_a_bad_name_stops_the_program_before_it_starts(tmp_path: Path) -> None:
    """The error is one line that names the variable, not a traceback."""
    (tmp_path / "program.py").write_text("print('started')")
    done = python(*OURS, cwd=tmp_path, SMITHY_RETRY_TELEMETRY="otle")
    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("requests-smithy-retry: telemetry='otle' (from environment variable SMITHY_RETRY_TEL")
