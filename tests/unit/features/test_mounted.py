"""Adapters that SDKs mount on their sessions, made to retry by ``install`` (contract 10.5)."""

import copy
import logging
import pickle
import ssl
import warnings

import pytest
import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, RetryConfigError, RetryConfigWarning, install, uninstall
from requests_smithy_retry.testing import FaultServer, Reply
from tests.support import URL, session_with

PLAIN = requests.Session.__init__, requests.Session.mount


@pytest.fixture(autouse=True)
def _restore():
    yield
    uninstall()
    assert (requests.Session.__init__, requests.Session.mount) == PLAIN


class SocketOptions(HTTPAdapter):
    """The form of influxdb's, keystoneauth's and dropbox's: options for each connection."""

    def __init__(self, options, **more):
        self.options = options
        super().__init__(**more)

    def init_poolmanager(self, *args, **kwargs):
        kwargs["socket_options"] = self.options
        super().init_poolmanager(*args, **kwargs)


class OwnContext(HTTPAdapter):
    """The form of google-auth's and docker's for TLS: a context that cannot be copied, for proxies as well."""

    def __init__(self):
        self.context = ssl.create_default_context()
        super().__init__(pool_maxsize=7)

    def init_poolmanager(self, *args, **kwargs):
        super().init_poolmanager(*args, ssl_context=self.context, **kwargs)

    def proxy_manager_for(self, *args, **kwargs):
        return super().proxy_manager_for(*args, ssl_context=self.context, **kwargs)


class UnixAdapter(HTTPAdapter):
    """The form of docker's and requests-unixsocket's: pools of its own, for a scheme of its own."""

    def __init__(self, path):
        self.path = path
        super().__init__()

    def get_connection_with_tls_context(self, request, verify, proxies=None, cert=None):
        return HTTPConnectionPool(self.path)

    def request_url(self, request, proxies):
        return request.path_url


class OwnState(HTTPAdapter):
    """Has a state of its own, and none of HTTPAdapter's."""

    def __init__(self, name="a"):
        super().__init__()
        self.name = name

    def __getstate__(self):
        return {"name": self.name}

    def __setstate__(self, state):
        self.__init__(state["name"])


class Looping(HTTPAdapter):
    """Retries by itself."""

    def send(self, request, **how):
        return [super(Looping, self).send(request, **how) for _ in range(2)][-1]


class Counting(Retry):
    """A Retry that only has another name."""


class Adding(Retry):
    """A Retry whose method only adds, as spotipy's does."""

    def increment(self, *args, **kwargs):
        logging.info("again")
        return super().increment(*args, **kwargs)


class Deciding(Retry):
    """A Retry that decides by itself, as PyGithub's does."""

    def increment(self, *args, error=None, **kwargs):
        if error is not None:
            raise error
        return super().increment(*args, **kwargs)


class Final(type(HTTPAdapter)):
    """A class of classes that has no subclasses."""

    def __new__(cls, name, bases, values):
        if any(isinstance(base, Final) for base in bases):
            raise TypeError(f"{bases[0].__name__} is final")
        return super().__new__(cls, name, bases, values)


def with_attribute(name, value):
    adapter = HTTPAdapter()
    setattr(adapter, name, value)
    return adapter


def installed(**options):
    """Install a policy without waits."""
    return install(**{"backoff": 0, "mounted": "plain", **options})


NOTHING = [
    lambda: HTTPAdapter(pool_maxsize=50),
    lambda: HTTPAdapter(max_retries=0),
    lambda: HTTPAdapter(max_retries=False),
    lambda: HTTPAdapter(max_retries=Retry(total=False)),
    lambda: HTTPAdapter(max_retries=Counting(0)),
    lambda: with_attribute("max_retries", 0),
    lambda: SocketOptions([]),
    OwnContext,
    lambda: UnixAdapter("/nowhere"),
]
"""Adapters that retry nothing."""

OWN = [
    (lambda: HTTPAdapter(max_retries=3), "Retry(3)", 4),
    (lambda: SocketOptions([], max_retries=Retry(2, status_forcelist=[500])), "Retry(2)", 3),
    (lambda: HTTPAdapter(max_retries=Counting(1)), f"{__name__}.Counting(1)", 2),
    (lambda: HTTPAdapter(max_retries=Adding(1)), f"{__name__}.Adding(1)", 2),
    (lambda: HTTPAdapter(max_retries=Adding(0)), f"{__name__}.Adding(0)", 1),
    (lambda: HTTPAdapter(max_retries=Retry(0, status_forcelist=[500])), "Retry(0)", 1),
    (lambda: with_attribute("max_retries", 5), "max_retries=5", 6),
]
"""Adapters whose own retries can be translated: their name, and their attempts."""

DECIDING = f"requests's HTTPAdapter with {__name__}.Deciding"
TAKEN = "is not what a RetryAdapter needs"

LEFT = [
    (lambda: HTTPAdapter(max_retries=Deciding(3)), f"{DECIDING}(3), whose increment cannot be"),
    (lambda: HTTPAdapter(max_retries=Deciding(0)), f"{DECIDING}(0), whose increment cannot be"),
    (Looping, "tests's Looping, which has a send of its own and may retry by itself"),
]
"""Adapters that are left alone if nothing is to be replaced, and the sentence that says so."""

IN_ANY_CASE = [
    (
        lambda: with_attribute("send", print),
        "requests's HTTPAdapter, whose send is an attribute and may retry by itself",
    ),
    (lambda: with_attribute("listeners", []), f"requests's HTTPAdapter, whose listeners {TAKEN}"),
    (type("Named", (HTTPAdapter,), {"scope_of": 1, "__doc__": ""}), f"Named, whose scope_of {TAKEN}"),
    (type("Fixed", (HTTPAdapter,), {"max_retries": Retry(0)}), f"Fixed, whose max_retries {TAKEN}"),
    (type("Bare", (HTTPAdapter,), {"__init__": lambda self: None}), f"Bare, whose constructor {TAKEN}"),
    (Final("Last", (HTTPAdapter,), {}), "Last, which cannot be combined: "),
    (type("File", (BaseAdapter,), {}), "File, which is not an HTTPAdapter"),
]
"""Those that are left alone with ``replace`` as well."""


@pytest.mark.parametrize("make", NOTHING)
@pytest.mark.parametrize("mounted", ["plain", "all", "PLAIN"])
def test_an_adapter_that_retries_nothing_gets_the_policy(make, mounted):
    """It is the same object with the same attributes, of its own class and of ours, and shares the strategy."""
    adapter = make()
    kind, before = type(adapter), {name: value for name, value in vars(adapter).items() if name != "max_retries"}
    installation = installed(max_attempts=4, mounted=mounted)
    assert session_with(adapter).get_adapter(URL) is adapter
    assert isinstance(adapter, kind)
    assert isinstance(adapter, RetryAdapter)
    assert (kind.__name__ if kind is not HTTPAdapter else "RetryAdapter") == type(adapter).__name__
    assert before == {name: value for name, value in vars(adapter).items() if name in before}
    policy = (adapter.strategy, adapter.retry_config.max_attempts, adapter.max_retries.total)
    assert ((installation.strategy, 4, 3), ()) == (policy, installation.left_alone)


@pytest.mark.parametrize(("make", "name", "attempts"), OWN)
def test_own_retries_are_never_multiplied(make, name, attempts):
    """Plain leaves the adapter as it is, and names it; all has us make its own attempts, and no more."""
    installation, adapter = installed(max_attempts=9), make()
    session_with(adapter)
    assert not isinstance(adapter, RetryAdapter)
    owner = f"{type(adapter).__module__.partition('.')[0]}'s {type(adapter).__name__}"
    assert (f"{owner} with {name}, which mounted='all' would translate",) == installation.left_alone
    installation = installed(max_attempts=9, mounted="all")
    session = session_with(adapter)
    assert (attempts, ()) == (adapter.strategy.max_attempts, installation.left_alone)
    assert session.get_adapter("https://x").strategy is not installation.strategy


@pytest.mark.parametrize("make", [*NOTHING, *(make for make, *_ in OWN), *(make for make, _ in LEFT)])
def test_replace_gives_every_adapter_the_policy(make):
    """Whatever retries it has, it shares the strategy; nothing of its own counts is left."""
    adapter, installation = make(), installed(max_attempts=4, mounted="replace")
    session_with(adapter)
    assert (installation.strategy, 3, ()) == (adapter.strategy, adapter.max_retries.total, installation.left_alone)


@pytest.mark.real_time
def test_a_send_of_its_own_stays_above_the_policy():
    """With replace it goes on, and what it sends has retries; its loop multiplies them, as the list says."""
    installation, adapter = installed(max_attempts=2, mounted="replace", quota=None), Looping()
    with FaultServer(default=Reply(503)) as server:
        session_with(adapter).get(server.url, timeout=60)
        assert 2 * 2 == len(server.requests)
    assert "tests's Looping, beneath its own send: " in installation.report(each=True)[-1]


@pytest.mark.parametrize(
    ("mounted", "make", "sentence"),
    [
        *((mounted, *row) for mounted in ("plain", "all") for row in LEFT + IN_ANY_CASE),
        *(("replace", *row) for row in IN_ANY_CASE),
    ],
)
def test_what_cannot_be_reached_is_left_alone_and_named(mounted, make, sentence):
    """It stays as it is; the installation says so, and why."""
    adapter, installation = make(), installed(mounted=mounted)
    kind, before = type(adapter), dict(vars(adapter))
    session = session_with(adapter)
    assert (adapter, kind, before) == (session.get_adapter("https://x"), type(adapter), vars(adapter))
    assert 1 == len(installation.left_alone)
    assert sentence in installation.left_alone[0]
    assert f"; left alone: {installation.left_alone[0]}>" in repr(installation)


def test_a_warning_that_is_an_error_does_not_reach_the_program():
    """A Retry with a setting that cannot be honoured is left alone where warnings are errors."""
    installation, adapter = installed(mounted="all"), HTTPAdapter(max_retries=Retry(3, redirect=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RetryConfigWarning)
        session_with(adapter)
    assert (HTTPAdapter, 3) == (type(adapter), adapter.max_retries.total)
    assert "which cannot be combined: max_retries=Retry(total=3" in installation.left_alone[0]


def test_pools_contexts_and_options_stay():
    """Pool sizes, the TLS context of direct and proxied connections and socket options are those of the adapter."""
    installed()
    tls, options = OwnContext(), SocketOptions([(1, 2, 3)], pool_connections=3)
    for adapter in (tls, options):
        session_with(adapter)
    pool = tls.poolmanager.connection_from_url("https://x")
    proxied = tls.proxy_manager_for("http://proxy:1").connection_from_url("https://x")
    assert [tls.context] * 2 == [made.conn_kw["ssl_context"] for made in (pool, proxied)]
    assert (7, 7) == (pool.pool.maxsize, tls._pool_maxsize)
    assert [(1, 2, 3)] == options.poolmanager.connection_from_url("http://x").conn_kw["socket_options"]
    assert 3 == options.poolmanager.pools._maxsize


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
@pytest.mark.parametrize(("mounted", "own", "attempts"), [("plain", 0, 4), ("all", 2, 3)])
def test_it_can_be_copied(again, mounted, own, attempts):
    """A copy has both classes, the attributes that its own class copies, and the policy, with a quota of its own."""
    installed(max_attempts=4, quota=10, mounted=mounted)
    own_state, options = OwnState("b"), SocketOptions([(1, 2, 3)], max_retries=own)
    options.__attrs__ = [*HTTPAdapter.__attrs__, "options"]
    for adapter, most in ((own_state, 4), (options, attempts)):
        session_with(adapter)
        copied = again(adapter)
        found = (type(copied), copied.strategy.max_attempts, copied.max_retries.total)
        assert (type(adapter), most, most - 1) == found
        assert copied.strategy is not adapter.strategy
        assert copied.poolmanager is not adapter.poolmanager
    assert "b" == again(own_state).name


@pytest.mark.parametrize(
    ("given", "text", "expected"),
    [(None, "", "none"), (None, " ALL ", "all"), ("none", "all", "none"), (None, "none", "none")],
)
def test_code_beats_the_environment(given, text, expected, monkeypatch):
    """Without either, adapters that somebody mounted are left alone."""
    monkeypatch.setenv("SMITHY_RETRY_MOUNTED", text)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert expected == install(mounted=given).mounted
    void = "mounted='all' (from environment variable SMITHY_RETRY_MOUNTED): it has no effect, because "
    said = [f"{void}mounted='none' (from code) wins"] if given else []
    assert said == [str(warning.message) for warning in warned]


@pytest.mark.parametrize(
    ("value", "source"),
    [*((value, "code") for value in ("some", "", True, 0)), ("some", "environment variable SMITHY_RETRY_MOUNTED")],
)
def test_a_bad_value_is_refused(value, source, monkeypatch):
    """The error names the option, the value, its source and what is allowed."""
    if source != "code":
        monkeypatch.setenv("SMITHY_RETRY_MOUNTED", value)
    with pytest.raises(RetryConfigError) as refusal:
        install(mounted=value if source == "code" else None)
    allowed = "one of 'none', 'plain', 'all', 'replace' is allowed"
    assert f"mounted={value!r} (from {source}): {allowed}" == str(refusal.value)


def test_the_environment_is_ignored_where_it_is_to_be(monkeypatch):
    """Not with trust_env=False; and where retries are switched off, nothing is reached, named or read."""
    monkeypatch.setenv("SMITHY_RETRY_MOUNTED", "some")
    assert "none" == install(trust_env=False).mounted
    monkeypatch.setenv("SMITHY_RETRY_ENABLED", "false")
    installation, adapter = install(mounted="all"), HTTPAdapter()
    session_with(adapter)
    assert (HTTPAdapter, ()) == (type(adapter), installation.left_alone)
