"""The adapter in every session of the process (contract 10.5)."""

import contextlib
import functools
import sys

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, RetryConfigWarning, SimpleRetryStrategy, install, uninstall
from requests_smithy_retry.features.everywhere.installation import RunOptions, install_later
from requests_smithy_retry.testing import FaultServer, Reply
from tests.support import Guide

PLAIN = requests.Session.__init__
install_module = sys.modules["requests_smithy_retry.features.everywhere.installation"]


@pytest.fixture(autouse=True)
def _restore():
    yield
    uninstall()
    requests.Session.__init__ = PLAIN


def adapters(session):
    return [type(session.get_adapter(url)) for url in ("http://x", "https://x")]


def have_retries(session):
    return [isinstance(session.get_adapter(url), RetryAdapter) for url in ("http://x", "https://x")]


class Own(requests.Session):
    """Mounts its own adapter, as SDKs do."""

    def __init__(self):
        super().__init__()
        self.mount("https://", HTTPAdapter(max_retries=2))


class Wide(HTTPAdapter):
    """A foreign adapter."""


class Wider(requests.Session):
    """Has its own adapter wherever there was a plain one, before requests' own constructor has ended."""

    def mount(self, prefix, adapter):
        super().mount(prefix, Wide())


def test_sessions_made_afterwards_have_the_adapter():
    """Sessions and their subclasses get it in both places; those that were there do not; what is mounted stays."""
    before = requests.Session()
    install()
    kept = HTTPAdapter()
    mounted = requests.Session()
    mounted.mount("http://", kept)
    assert [HTTPAdapter] * 2 == adapters(before)
    assert [True] * 2 == have_retries(requests.Session())
    assert [True] * 2 == have_retries(type("Sub", (requests.Session,), {})())
    assert [True, False] == have_retries(Own())
    assert [Wide] * 2 == adapters(Wider())
    assert kept is mounted.get_adapter("http://x")


def test_uninstall_restores_exactly_what_was_there():
    """Session.__init__ is the very function that it was, however often either was called."""
    uninstall()
    for options in ({}, {}, {"max_attempts": 2}):
        install(**options)
    assert PLAIN is not requests.Session.__init__
    for _ in range(2):
        uninstall()
    assert PLAIN is requests.Session.__init__
    assert [HTTPAdapter] * 2 == adapters(requests.Session())


def test_installing_again_without_arguments_changes_nothing():
    """The policy stays until options are given; then later sessions have the new one."""
    first = install(max_attempts=5)
    assert first is install()
    assert 5 == requests.Session().get_adapter("http://x").retry_config.max_attempts
    second = install(max_attempts=2)
    assert first is not second
    assert (2, "<Installation <StandardRetryStrategy max_attempts=2>>") == (second.config.max_attempts, repr(second))
    assert 2 == requests.Session().get_adapter("http://x").retry_config.max_attempts


def test_somebody_elses_wrapper_is_not_torn_out():
    """If others wrap Session.__init__ after us, uninstall leaves theirs, and ours beneath does nothing."""
    install()
    ours = requests.Session.__init__

    @functools.wraps(ours)
    def theirs(self):
        ours(self)
        self.theirs = True

    requests.Session.__init__ = theirs
    uninstall()
    session = requests.Session()
    assert (theirs, True, [HTTPAdapter] * 2) == (requests.Session.__init__, session.theirs, adapters(session))
    install()
    assert [True] * 2 == have_retries(requests.Session())


@pytest.mark.parametrize(
    ("value", "total"),
    [(5, 5), (0, 0), (False, 0), (None, 3), (Retry(4), 4), (Retry.DEFAULT, 3), (Retry(7, read=2), 7)],
)
@pytest.mark.parametrize("installed", [{}, {"strategy": SimpleRetryStrategy()}, {"strategy": Guide()}])
def test_an_assigned_max_retries_is_the_sessions_own(value, total, installed):
    """Retries of any form that HTTPAdapter takes hold for this session, which then has a strategy of its own."""
    shared = install(**installed).strategy
    session = requests.Session()
    for adapter in session.adapters.values():
        adapter.max_retries = value
    adapter = session.get_adapter("http://x")
    assert shared is requests.Session().get_adapter("http://x").strategy
    if total:
        assert (total + 1, False) == (adapter.strategy.max_attempts, adapter.strategy is shared)
    else:
        assert shared is adapter.strategy  # as one that was made with it


@pytest.mark.real_time
def test_requests_get_retries_and_shares_the_quota():
    """The module's own functions have retries, and one bucket between them."""
    install(quota=14, backoff=0)
    with FaultServer([Reply(503), Reply(200), Reply(503)], default=Reply(503)) as server:
        assert [200, 503, 503] == [requests.get(server.url, timeout=60).status_code for _ in range(3)]
        assert 2 + 2 + 1 == len(server.requests)


def test_the_environment_may_be_looked_at_later(monkeypatch):
    """The environment is read when the first session is made; an earlier install or uninstall is not undone."""
    refused = []
    install_later(RunOptions(refused.append, print))
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "7")
    session = requests.Session()
    assert 7 == session.get_adapter("https://").retry_config.max_attempts
    install_later(RunOptions(refused.append, print))
    assert session.get_adapter("https://").strategy is requests.Session().get_adapter("https://").strategy
    uninstall()
    install_later(RunOptions(refused.append, print))
    with pytest.warns(RetryConfigWarning, match=r"max_attempts=2 \(from code\) wins$"):
        assert install(max_attempts=2) is install()
    assert 2 == requests.Session().get_adapter("https://").retry_config.max_attempts
    uninstall()
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "many")
    install_later(RunOptions(refused.append, print))
    assert HTTPAdapter is type(requests.Session().get_adapter("https://"))
    assert ["max_attempts"] == [refusal.option for refusal in refused]


def test_a_session_that_is_made_while_it_is_taken_back_stays_plain(monkeypatch):
    """Another thread took it back between the session's making and the look at the environment."""

    class TakenBack(contextlib.nullcontext):
        def __enter__(self):
            install_module._pending = None

    install_later(RunOptions(print, print))
    monkeypatch.setattr(install_module, "_lock", TakenBack())
    assert HTTPAdapter is type(requests.Session().get_adapter("https://"))
