"""The names that the package exports, and how little is imported before they are used."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import subprocess
import sys
import types
from pathlib import Path

import pytest

import requests_smithy_retry
import requests_smithy_retry.smithy

PACKAGE = Path(requests_smithy_retry.__file__).parent
HOMES = {home: tuple(names.split()) for home, names in requests_smithy_retry._HOMES.items()}

FEW_NEED = {
    *("_HOME.smithy.model", "_HOME.smithy.adaptive", "_HOME.smithy.rate_limiter", "_HOME.smithy.buckets"),
    *("_HOME.features.redis", "_HOME.config.report"),
    *("configparser", "difflib", "gzip", "pickle", "platform", "uuid", "xml.parsers.expat"),
}
"""Loaded by those alone who use it: parts of the package, and what the standard library has of the heavier kind."""


def imported_names(block: list[ast.stmt]) -> dict[str, tuple[str, ...]]:
    """Return the names that the ``from .module import`` lines of a block import, by module."""
    nodes = [node for node in block if isinstance(node, ast.ImportFrom) and node.level]
    return {str(node.module): tuple(alias.name for alias in node.names) for node in nodes}


def loaded_by(program: str) -> set[str]:
    """The modules that a program loads beyond those of requests; ``_HOME`` stands for the package."""
    prepare = "import requests, sys; requests.Session(); before = set(sys.modules)"
    tell = "print(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", f"{prepare}\n{program}\n{tell}"], check=True, capture_output=True, text=True
    )
    return {name.replace("requests_smithy_retry", "_HOME") for name in done.stdout.split()}


def test_what_checkers_see_and_what_is_imported_are_the_same():
    """The names for type checkers, those that are imported when asked for, and ``__all__`` agree."""
    body = ast.parse((PACKAGE / "__init__.py").read_text()).body
    for_checkers = next(imported_names(node.body) for node in body if isinstance(node, ast.If))
    assert for_checkers == HOMES
    names = [name for group in HOMES.values() for name in group]
    assert sorted(["__version__", *names]) == requests_smithy_retry.__all__


@pytest.mark.parametrize(("home", "name"), [(home, name) for home, names in HOMES.items() for name in names])
def test_a_name_comes_from_its_file(home, name):
    """An exported name is the file's own object, and no file has that name, because importing it would overwrite it."""
    file = __import__(f"requests_smithy_retry.{home}", fromlist=[name])
    assert getattr(file, name) is getattr(requests_smithy_retry, name)
    assert not (PACKAGE / f"{name}.py").exists()
    assert not (PACKAGE / name).exists()


def test_other_names_are_not_there():
    """An unknown name is an AttributeError in Python's own words; ``dir`` has those of ``__all__`` and no other."""
    with pytest.raises(AttributeError, match=r"^module 'requests_smithy_retry' has no attribute 'RetryAdaptor'$"):
        requests_smithy_retry.RetryAdaptor  # noqa: B018
    with pytest.raises(AttributeError, match=r"^module 'requests_smithy_retry.smithy' has no attribute 'nothing'$"):
        requests_smithy_retry.smithy.nothing  # noqa: B018
    assert requests_smithy_retry.__all__ == dir(requests_smithy_retry)


def test_functions_with_the_name_of_their_file_stay_functions():
    """``mount``, ``install`` and ``classifier`` are the functions, whichever module is imported first."""
    program = (
        "import requests_smithy_retry.adapter, requests_smithy_retry.classifiers.protocol\n"
        "from requests_smithy_retry import RetryAdapter, classifier, install, mount\n"
        "assert all(type(item) is type(lambda: 0) for item in (classifier, install, mount))"
    )
    assert "_HOME.adapter" in loaded_by(program)


def test_importing_loads_little_and_mounting_what_the_default_mode_needs():
    """No file beside the package's own; no models, other modes or AWS settings, which few programs need."""
    assert {"_HOME"} == loaded_by("import requests_smithy_retry")
    loaded = loaded_by("from requests_smithy_retry import mount\nmount(requests.Session())")
    assert {"_HOME.adapter", "_HOME.core.loop", "_HOME.core.strategy"} <= loaded
    assert set() == loaded & FEW_NEED


def test_a_failure_imports_nothing():
    """All that a retry needs was loaded when the adapter was mounted: no file is opened when things go wrong."""
    program = """
from requests_smithy_retry import mount
session = mount(requests.Session(), backoff=0, patience=0.01)
import socket
with socket.socket() as nobody_listens:
    nobody_listens.bind(("127.0.0.1", 0))
    before = set(sys.modules)
    try:
        session.get(f"http://127.0.0.1:{nobody_listens.getsockname()[1]}/")
    except requests.ConnectionError as error:
        assert len(error._retry_history.attempts) in (3, 4)  # the question, if 10 ms leave time for it
"""
    assert set() == {name for name in loaded_by(program) if name.startswith("_HOME")}


@pytest.mark.parametrize(
    ("path", "names", "needed"),
    [
        ("", requests_smithy_retry.__all__, "requests"),
        (".testing", ("FakeClock", "FaultServer", "skipped_waits", "watched_attempts"), "requests"),
        (".policy", ("RetryDirective", "StandardRetryPolicy", "retry"), "requests"),
        (".smithy", ("ModeledError", "ModeledOperation", "verdict_for"), "requests"),
        (".features.redis", ("RedisQuota", "RedisTokenBucket"), "redis"),
        (".prometheus", ("PrometheusListener",), "prometheus_client"),
        (".otel", ("OpenTelemetryListener",), "opentelemetry"),
    ],
)
def test_a_public_import_path_stays(path, names, needed):
    """Modules move into rooms; the paths that programs import from stay where they are."""
    pytest.importorskip(needed)
    module = importlib.import_module(f"requests_smithy_retry{path}")
    assert [] == [name for name in names if not hasattr(module, name)]


def test_the_description_on_a_package_index_has_no_link_that_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links and pictures of the repository are left out of the README there; its text is not."""
    given: dict[str, str] = {}
    monkeypatch.setitem(sys.modules, "setuptools", types.SimpleNamespace(setup=given.update))
    runpy.run_path(str(PACKAGE.parent / "setup.py"))
    text = given["long_description"]
    assert [] == re.findall(r"\]\((?!https?://)[^)]*\)", text)
    assert "<!--" not in text
    assert "a POST is sent again only if the server cannot have applied it" in text
