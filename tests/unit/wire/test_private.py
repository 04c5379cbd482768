"""The private names of urllib3, requests and the standard library: each is listed, and the adapter can do without."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from urllib3.connectionpool import HTTPConnectionPool

import requests_smithy_retry
from requests_smithy_retry import RetryAdapter, RetryConfigWarning
from requests_smithy_retry.wire import private
from tests.faults import FaultServer, Reply

PACKAGE = Path(requests_smithy_retry.__file__).parent


@pytest.fixture(autouse=True)
def _look_again() -> Iterator[None]:
    private.missing.cache_clear()
    private.are_known.cache_clear()
    yield
    private.missing.cache_clear()
    private.are_known.cache_clear()


@pytest.mark.parametrize("name", private.NAMES)
def test_the_installed_releases_have_each_name(name: str) -> None:
    """A release without it fails this test by its name."""
    assert name not in private.missing()


def test_without_one_the_adapter_retries_and_says_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It warns once, and urllib3 keeps its own pools."""
    monkeypatch.setitem(private.NAMES, "HTTPConnection._gone", "was there")
    with pytest.warns(
        RetryConfigWarning, match=r"not found in urllib3 .*: HTTPConnection\._gone\. Retries work"
    ) as seen:
        adapters = [RetryAdapter(max_backoff=0), RetryAdapter()]
    assert 1 == len(seen)
    assert [HTTPConnectionPool] * 2 == [each.poolmanager.pool_classes_by_scheme["http"] for each in adapters]
    with FaultServer([Reply(503), Reply(200)]) as server, requests.Session() as session:
        session.trust_env = False
        session.mount("http://", adapters[0])
        assert 200 == session.get(server.url).status_code


def private_names(tree: ast.AST) -> Iterator[str]:
    """Every private attribute that a module reads or sets, or asks for by its text."""
    for node in ast.walk(tree):
        name: object = getattr(node, "attr", None)
        if isinstance(node, ast.Call) and "getattr" == ast.unparse(node.func):
            name = getattr(node.args[1], "value", None)
        if isinstance(name, str) and name.startswith("_") and not name.startswith("__"):
            yield name


def own_names(tree: ast.AST) -> Iterator[str]:
    """Every name that a module defines, or sets on an object of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and "self" == ast.unparse(node.value):
            yield node.attr


@pytest.mark.once
def test_every_private_name_of_others_is_listed() -> None:
    """With its reason, in the one module that knows which release lacks it."""
    trees = [ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py") if path.name != "private.py"]
    listed = {name.rpartition(".")[2] for name in private.NAMES} | set(private.OPTIONAL)
    own = {name for tree in trees for name in own_names(tree)} - listed
    used = {name for tree in trees for name in private_names(tree)}
    assert set() == used - own - listed - {"_replace", "_asdict", "_getframe", "_retry_started"}
