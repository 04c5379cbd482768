"""Adapters that SDKs mount on their sessions, made to retry by ``install`` (contract 10.5)."""

import copy
import logging
import pickle
import ssl
import warnings

import pytest
import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.auth import HTTPDigestAuth
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, RetryConfigError, install, uninstall
from requests_smithy_retry.testing import FaultServer, Reply, refusing_port
from requests_smithy_retry.wire.pools import OWN_POOLS, PreparingPool
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
LEFT = [
    (lambda: HTTPAdapter(max_retries=Deciding(3)), f"{DECIDING}(3), whose increment cannot be"),
    (lambda: HTTPAdapter(max_retries=Deciding(0)), f"{DECIDING}(0), whose increment cannot be"),
    (Looping, "tests's Looping, which has a send of its own and may retry by itself"),
    (lambda: with_attribute("send", print), "requests's HTTPAdapter, which has a send of its own and may retry"),
]
"""Adapters that are left alone if nothing is to be replaced, and the sentence that says so."""

IN_ANY_CASE = [
    (type("File", (BaseAdapter,), {}), "File, which is not an HTTPAdapter"),
]
"""Those that are left alone with ``replace`` as well."""

ODD = [
    lambda: with_attribute("listeners", []),
    type("Named", (HTTPAdapter,), {"scope_of": 1, "__doc__": ""}),
    type("Fixed", (HTTPAdapter,), {"max_retries": Retry(0)}),
    type("Bare", (HTTPAdapter,), {"__init__": lambda self: None}),
]
"""Adapters that retry nothing, with names that are ours, or without what HTTPAdapter has."""


def around(session, url="https://x"):
    """Our adapter, and theirs within it."""
    found = session.get_adapter(url)
    assert isinstance(found, RetryAdapter)
    return found


@pytest.mark.parametrize("make", [*NOTHING, *ODD])
@pytest.mark.parametrize("mounted", ["plain", "all", "PLAIN"])
def test_an_adapter_that_retries_nothing_gets_the_policy(make, mounted):
    """One of ours is around it, which shares the strategy; theirs is the same object with the same attributes."""
    adapter = make()
    kind, before = type(adapter), dict(vars(adapter))
    installation = installed(max_attempts=4, mounted=mounted)
    ours = around(session_with(adapter))
    now = {name: value for name, value in vars(adapter).items() if name not in OWN_POOLS}
    assert (adapter, kind, before) == (ours.theirs, type(adapter), now)
    assert ours is session_with(adapter).get_adapter(URL)
    policy = (ours.strategy, ours.retry_config.max_attempts)
    assert ((installation.strategy, 4), ()) == (policy, installation.left_alone)


@pytest.mark.parametrize(("make", "name", "attempts"), OWN)
def test_own_retries_are_never_multiplied(make, name, attempts):
    """Plain leaves the adapter as it is, and names it; all has us make its own attempts, and no more."""
    installation, adapter = installed(max_attempts=9), make()
    assert adapter is session_with(adapter).get_adapter(URL)
    owner = f"{type(adapter).__module__.partition('.')[0]}'s {type(adapter).__name__}"
    assert (f"{owner} with {name}, which mounted='all' would translate",) == installation.left_alone
    installation = installed(max_attempts=9, mounted="all")
    for _ in range(2):  # the first one is gone before the second
        ours = around(session_with(adapter))
        assert (attempts, ()) == (ours.strategy.max_attempts, installation.left_alone)
        assert ours.strategy is not installation.strategy
        del ours


@pytest.mark.parametrize("make", [*NOTHING, *ODD, *(make for make, *_ in OWN), *(make for make, _ in LEFT)])
def test_replace_gives_every_adapter_the_policy(make):
    """Whatever retries it has, it shares the strategy; nothing of its own counts is left."""
    adapter, installation = make(), installed(max_attempts=4, mounted="replace")
    assert (installation.strategy, ()) == (around(session_with(adapter)).strategy, installation.left_alone)


@pytest.mark.real_time
def test_a_send_of_its_own_sends_each_attempt():
    """With replace each attempt goes through it; its loop multiplies them, as the list says."""
    installation, adapter = installed(max_attempts=2, mounted="replace", quota=None), Looping()
    with FaultServer(default=Reply(503)) as server:
        session_with(adapter).get(server.url, timeout=60)
        assert 2 * 2 == len(server.requests)
    assert "tests's Looping, around its own send: " in installation.report(each=True)[-1]


@pytest.mark.real_time
@pytest.mark.parametrize("mounted", ["all", "replace"])
def test_urllib3_retries_nothing_beneath(mounted):
    """The attempts of a translated Retry, or of the policy, are all that are made."""
    installed(max_attempts=3, mounted=mounted, quota=None)
    own = HTTPAdapter(max_retries=Retry(2, status_forcelist=[503], backoff_factor=0.001, raise_on_status=False))
    with FaultServer(default=Reply(503)) as server:
        assert 503 == session_with(own).get(server.url, timeout=60).status_code
        assert 3 == len(server.requests)


def assigned(adapter, ours, value):
    adapter.max_retries = value


def assigned_to_ours(adapter, ours, value):
    ours.max_retries = value


def set_in_place(adapter, ours, value):
    for name, setting in vars(Retry.from_int(value)).items():
        setattr(adapter.max_retries, name, setting)


FORMS = [assigned, assigned_to_ours, set_in_place]


@pytest.mark.real_time
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize(
    ("mounted", "attempts", "said"),
    [
        ("plain", 3, "none of 1 adapter had retries: --mounted=all would reach 1 more (run --list names each)"),
        ("all", 3, "1 of 1 adapter had retries"),
        ("replace", 4, "1 of 1 adapter had retries"),
    ],
)
def test_what_is_assigned_after_mounting_is_treated_as_at_mounting(form, is_own, mounted, attempts, said):
    """Left to urllib3 under plain, translated under all, ignored under replace; the report says the final state."""
    installation = installed(max_attempts=4, mounted=mounted, quota=None)
    session = requests.Session() if is_own else session_with(HTTPAdapter())
    ours = around(session, "http://x")
    form(ours.theirs, ours, Retry(2, status_forcelist=[503], backoff_factor=0.001, raise_on_status=False))
    assert said == installation.report()[0]
    with FaultServer(default=Reply(503)) as server:
        for number in (1, 2):
            assert 503 == session.get(server.url, timeout=60).status_code
            assert number * attempts == len(server.requests)


def made_new(adapter, own):
    adapter.max_retries = adapter.max_retries.new(total=2)


def set_on_what_is_read(adapter, own):
    adapter.max_retries.total = 2


def set_on_its_own(adapter, own):
    own.total = 2


def added_to_a_list_of_its_own(adapter, own):
    own.status_forcelist.append(503)


@pytest.mark.real_time
@pytest.mark.parametrize("mounted", ["all", "replace"])
@pytest.mark.parametrize(
    ("change", "kind", "attempts"),
    [
        (made_new, "Retry", 3),
        (made_new, "int", 1),  # a number repeats no answers
        (set_on_what_is_read, "Retry", 3),
        (set_on_its_own, "Retry", 3),
        (added_to_a_list_of_its_own, "list", 4),
    ],
)
def test_a_program_reads_and_changes_the_max_retries_that_it_gave(change, kind, attempts, mounted):
    """What it makes of it, or sets in it, has the effect that it has without us; nothing is multiplied."""
    statuses = [500] if kind == "list" else [503]
    own = Retry(3, status_forcelist=statuses, backoff_factor=0.001, raise_on_status=False)
    installed(max_attempts=9, mounted=mounted, quota=None)
    adapter = HTTPAdapter(max_retries=3 if kind == "int" else own)
    session = session_with(adapter)
    read = adapter.max_retries
    assert (Retry, 3, 4, repr(Retry(3))) == (type(read.new()), read.total, read.new(total=4).total, repr(read))
    with FaultServer(default=Reply(503)) as server:
        for number, change_now in enumerate((change, lambda *_: None), 1):
            change_now(adapter, own)
            assert 503 == session.get(server.url, timeout=60).status_code
            assert number * (9 if mounted == "replace" else attempts) == len(server.requests)


@pytest.mark.real_time
@pytest.mark.parametrize("kind", [Retry, Counting, Deciding])
@pytest.mark.parametrize("mounted", ["all", "replace"])
def test_a_session_without_ours_has_the_retries_of_the_same_adapter(mounted, kind):
    """One made before ``install``, and one made after ``uninstall``: ours is quiet only beneath our own attempts."""
    adapter = HTTPAdapter(max_retries=kind(2, status_forcelist=[503], backoff_factor=0.001, raise_on_status=False))
    before = session_with(adapter)
    with FaultServer(default=Reply(503)) as server:
        plain = sends(before, server)
        installed(max_attempts=7, mounted=mounted, quota=None)
        ours = sends(session_with(adapter), server)
        again = sends(before, server)
        uninstall()
        assert (plain, plain) == (again, sends(session_with(adapter), server))
        assert ours == (7 if mounted == "replace" else plain)


@pytest.mark.parametrize(("mounted", "times"), [("all", 1), ("replace", 0)])
def test_an_increment_is_called_once_for_each_failure_or_never(mounted, times):
    """Also that of one that retries nothing: by its translation, not by urllib3 beneath as well."""
    calls = []

    class Logging(Retry):
        def increment(self, *args, **kwargs):
            calls.append(args)
            return super().increment(*args, **kwargs)

    installed(max_attempts=3, mounted=mounted, quota=None)
    with refusing_port() as port, pytest.raises(requests.ConnectionError):
        session_with(HTTPAdapter(max_retries=Logging(0))).get(f"http://127.0.0.1:{port}/")
    assert times == len(calls)


def sends(session, server):
    """The requests of one GET."""
    server.reset()
    session.get(server.url, timeout=60)
    return len(server.requests)


@pytest.mark.real_time
def test_own_retries_that_cannot_be_translated_any_more_are_the_programs_again():
    """They are in force as without us, in the object that the program made."""
    own = Retry(2, status_forcelist=[503], backoff_factor=0.001, raise_on_status=False)
    installation, adapter = installed(max_attempts=9, mounted="all", quota=None), HTTPAdapter(max_retries=own)
    session = session_with(adapter)
    with FaultServer(default=Reply(503)) as server:
        own.is_exhausted = lambda: False
        assert 503 == session.get(server.url, timeout=60).status_code
        assert (own, 3, 1) == (adapter.max_retries, len(server.requests), len(installation.left_alone))


@pytest.mark.real_time
@pytest.mark.parametrize("mounted", ["plain", "all"])
@pytest.mark.parametrize(
    "value",
    [Deciding(2), "three", object()],
    ids=["its own is_retry", "text", "object"],
)
def test_what_cannot_be_translated_is_left_to_the_program(mounted, value):
    """Nothing raises that does not without us, and a value that retries nothing brings the policy back."""
    installation = installed(max_attempts=4, mounted=mounted, quota=None)
    adapter = HTTPAdapter()
    session = session_with(adapter)
    adapter.max_retries = value
    with FaultServer() as server:
        if isinstance(value, Retry):
            assert 200 == session.get(server.url, timeout=60).status_code
        assert installation.report()[0].startswith("none of 1 adapter had retries: --mounted=")
        assert 1 == len(installation.left_alone)
        adapter.max_retries = 0
        server.script([Reply(503), Reply(200)])
        assert 200 == session.get(server.url, timeout=60).status_code
    assert "1 of 1 adapter had retries" == installation.report()[0]


@pytest.mark.real_time
def test_what_follows_a_response_has_retries_too():
    """``response.connection``, by which digest authentication answers a 401, is our adapter."""
    installed()
    challenge = Reply(401, {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'})
    with FaultServer([challenge, Reply(503), Reply(200)]) as server:
        session = session_with(SocketOptions([]))
        response = session.get(server.url, auth=HTTPDigestAuth("u", "p"), timeout=60)
    assert (200, session.get_adapter(server.url)) == (response.status_code, response.connection)


def test_attributes_are_theirs():
    """What ours does not have is read from theirs, and set there."""
    installed()
    adapter = SocketOptions([1])
    ours = around(session_with(adapter))
    ours.options = [2]
    ours.another = 3
    assert ([2], 3) == (adapter.options, adapter.another)
    assert ([2], adapter.poolmanager) == (ours.options, ours.poolmanager)
    assert ours.max_retries is adapter.max_retries
    with pytest.raises(AttributeError, match=r"SocketOptions.*no attribute 'nothing'"):
        assert ours.nothing
    with pytest.raises(AttributeError, match="theirs"):
        assert type(ours).__new__(type(ours)).nothing


def test_each_method_of_an_adapter_is_theirs():
    """A program may call them on the adapter that its session has."""
    installed()
    calls = []

    class Telling(HTTPAdapter):
        """Tells of each call."""

    names = [
        name
        for name, method in vars(HTTPAdapter).items()
        if callable(method) and not name.startswith("_") and name not in ("send",)
    ]
    for name in names:
        setattr(Telling, name, lambda *given, name=name, **more: calls.append(name))
    ours = around(session_with(Telling()))
    calls.clear()
    for name in names:
        getattr(ours, name)(*([None] if name == "proxy_manager_for" else []))
    assert names == calls


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


@pytest.mark.parametrize(
    "retry",
    [
        Retry(3, redirect=2),
        Retry(3, raise_on_redirect=False),
        Retry(3, remove_headers_on_redirect=["X"]),
    ],
    ids=["redirect", "raise_on_redirect", "remove_headers_on_redirect"],
)
def test_what_requests_ignores_in_a_programs_retry_is_no_reason_to_warn(retry):
    """As without us, such a setting has no effect; where warnings are errors, the adapter has retries, too."""
    installation, adapter = installed(mounted="all"), HTTPAdapter(max_retries=retry)
    session = session_with(adapter)
    assert (4, ()) == (around(session).retry_config.max_attempts, installation.left_alone)


def test_a_warning_that_is_an_error_does_not_reach_the_program(monkeypatch):
    """A Retry that overrides a variable is left alone where warnings are errors."""
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "9")
    installation, adapter = installed(mounted="all"), HTTPAdapter(max_retries=Retry(3))
    session_with(adapter)
    assert (HTTPAdapter, 3) == (type(adapter), adapter.max_retries.total)
    assert "whose max_retries cannot be translated: " in installation.left_alone[0]


def test_pools_contexts_and_options_stay():
    """Pool sizes, the TLS context of direct and proxied connections and socket options are those of the adapter."""
    installed()
    tls, options = OwnContext(), SocketOptions([(1, 2, 3)], pool_connections=3)
    ours, _ = around(session_with(tls)), session_with(options)
    pool = tls.poolmanager.connection_from_url("https://x")
    proxied = ours.proxy_manager_for("http://proxy:1").connection_from_url("https://x")
    assert [tls.context] * 2 == [made.conn_kw["ssl_context"] for made in (pool, proxied)]
    assert (7, 7) == (pool.pool.maxsize, tls._pool_maxsize)
    assert [(1, 2, 3)] == options.poolmanager.connection_from_url("http://x").conn_kw["socket_options"]
    assert 3 == options.poolmanager.pools._maxsize


@pytest.mark.real_time
@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize("anew", [False, True])
def test_their_pools_are_prepared_as_ours_are(proxied, anew):
    """Those of a direct connection, of a proxy, and of a manager that they made anew."""
    installed()
    adapter = SocketOptions([])
    session = session_with(adapter)
    if anew:
        adapter.init_poolmanager(1, 1)
    with FaultServer() as server:
        proxies = {"http": server.url.rstrip("/")} if proxied else None
        assert 200 == session.get("http://elsewhere.test/" if proxied else server.url, proxies=proxies).status_code
    (manager,) = adapter.proxy_manager.values() if proxied else [adapter.poolmanager]
    assert [True] == [isinstance(manager.pools[key], PreparingPool) for key in manager.pools.keys()]  # noqa: SIM118


def test_a_proxy_that_cannot_be_is_their_error():
    """It is raised by their own send."""
    installed()
    with pytest.raises(requests.exceptions.InvalidProxyURL):
        session_with(SocketOptions([])).get(URL, proxies={"http": "http:///path", "https": "http:///path"})


class Local(HTTPAdapter):
    """Answers by itself, as those of tests do."""

    def send(self, request, **how):
        response = requests.Response()
        response.status_code, response.connection = 204, "nowhere"
        return response


def test_a_response_that_is_not_of_an_adapter_stays_as_it_is():
    """Only a ``connection`` that is theirs becomes ours; and proxies of other schemes are of no concern."""
    installed(mounted="replace")
    assert "nowhere" == session_with(Local()).get(URL, proxies={"ftp": "http://proxy"}).connection


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
@pytest.mark.parametrize(("mounted", "own", "attempts"), [("plain", 0, 4), ("all", 2, 3)])
def test_it_can_be_copied(again, mounted, own, attempts):
    """A copy is around a copy of theirs, as that one copies itself, and has the policy, with a quota of its own."""
    installed(max_attempts=4, quota=10, mounted=mounted)
    own_state, options = OwnState("b"), SocketOptions([(1, 2, 3)], max_retries=own)
    options.__attrs__ = [*HTTPAdapter.__attrs__, "options"]
    for adapter, most in ((own_state, 4), (options, attempts)):
        ours = around(session_with(adapter))
        copied = again(ours)
        assert (type(ours), type(adapter), most) == (type(copied), type(copied.theirs), copied.strategy.max_attempts)
        assert copied.strategy is not ours.strategy
        assert copied.poolmanager is not adapter.poolmanager
        copied.max_retries = Retry(7)
        assert (mounted == "all", 8) == (copied.retry_config.enabled, copied.retry_config.max_attempts) or own == 0
    assert "b" == again(around(session_with(own_state))).name


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
