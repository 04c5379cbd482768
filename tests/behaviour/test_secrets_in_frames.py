"""No planted secret is in a local variable of ours that a traceback leads to, or in the repr of what we hold
(contract 12): Sentry, rich and ``pytest --showlocals`` print both.
"""

from __future__ import annotations

import gc
import socket
import threading
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import requests.exceptions

import requests_smithy_retry
from requests_smithy_retry import (
    RetryAdapter,
    RetryError,
    RetryListener,
    StandardRetryStrategy,
    classifier,
    retry_history,
    retry_options,
)
from requests_smithy_retry.testing import FakeClock, Reply, refusing_port
from tests.faults import CataloguedFault, FaultProxy, FaultServer, StopReading, fault_catalogue
from tests.support import Guide
from tests.unit.wire.support import SocksProxy

pytestmark = pytest.mark.real_time

PACKAGE = requests_smithy_retry.__name__
SECRET = "hunter2.in.frames"  # of this file alone: other tests keep objects with theirs
BODY = SECRET.encode() * 20
HEADERS = {"X-Key": SECRET, "Set-Cookie": f"session={SECRET}"}


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that it has beneath it."""
    ahead, seen = [error], set()
    while ahead:
        at = ahead.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        yield at
        beneath = (at.__cause__, at.__context__, getattr(at, "reason", None), *at.args)
        ahead += [each for each in beneath if isinstance(each, BaseException)]


def locals_with_it(error: BaseException) -> set[str]:
    """Return each local of ours whose repr has the secret, in any frame that an exception's tracebacks lead to."""
    found = set()
    for each in chain_of(error):
        trace = each.__traceback__
        while trace is not None:
            frame, trace = trace.tb_frame, trace.tb_next
            module = frame.f_globals.get("__name__", "")
            if module.startswith(PACKAGE):
                place = f"{module}.{frame.f_code.co_name}"
                found |= {f"{place}: {name}" for name, value in frame.f_locals.items() if SECRET in repr(value)}
    return found


def objects_with_it() -> set[str]:
    """Return the classes of ours of which an instance has the secret in its repr."""
    found = set()
    for thing in gc.get_objects():
        home = str(type(thing).__module__)  # a few types have a descriptor there
        if home.startswith(PACKAGE) and "testing" not in home and SECRET in repr(thing):
            found.add(f"{home}.{type(thing).__qualname__}")
    return found


def call(
    url: str, method: str = "GET", *, stream: bool = False, block: dict[str, Any] | None = None, **options: Any
) -> BaseException | None:
    """Send a request full of secrets, check what it leaves behind, and return what it raised."""
    sending = {name: options.pop(name) for name in ("data", "proxies", "timeout") if name in options}
    sending = {"data": BODY, "timeout": 0.5, **sending}
    defaults = {} if "strategy" in options else {"max_attempts": 2, "backoff": 0, "quota": None}
    options = {**defaults, **options}
    raised: BaseException | None = None
    headers = {"Authorization": f"Bearer {SECRET}", "X-Key": SECRET, "Cookie": f"a={SECRET}"}
    with requests.Session() as session, retry_options(**block or {}):
        session.trust_env = False
        adapter = RetryAdapter(**options)
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        secret_url = f"{url.replace('://', f'://user:{SECRET}@')}/things?{SECRET}={SECRET}#{SECRET}"
        try:
            response = session.request(method, secret_url, headers=headers, stream=stream, **sending)
            if stream:
                with response:
                    for _ in response.iter_content(7):
                        pass
        except BaseException as error:
            raised = error
        assert set() == objects_with_it()
        if raised is not None:
            assert set() == locals_with_it(raised)
    return raised


FAULTS = [each for each in fault_catalogue(BODY) if each.outcome != "whole"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_whatever_a_server_does(fault: CataloguedFault) -> None:
    """Whatever breaks, no local of ours and no repr has userinfo, query, header or body."""
    with FaultServer(default=fault.behaviour) as server:
        call(server.url, timeout=0.1, operation_timeout=0.3)


@pytest.mark.parametrize("fault", [each for each in FAULTS if each.outcome == "broken"], ids=lambda fault: fault.name)
def test_whatever_breaks_a_stream(fault: CataloguedFault) -> None:
    """The same while the caller reads the body."""
    with FaultServer(default=fault.behaviour) as server:
        call(server.url, "POST", stream=True, timeout=0.1)


def rows(*parts: bytes, error: type[Exception] = ValueError) -> Iterator[bytes]:
    yield from parts
    raise error("no more")


class Broken:
    """A file that breaks while it is sent."""

    def __init__(self) -> None:
        self.parts = [BODY]

    def __len__(self) -> int:
        return 10 * len(BODY)

    def tell(self) -> int:
        return 0

    def seek(self, *_: Any) -> int:
        return 0

    def read(self, size: int = -1) -> bytes:
        if not self.parts:
            raise OSError("the disk is gone")
        return self.parts.pop()


def failing(*_: Any, **__: Any) -> Any:
    raise ValueError("a bug of the program's")


class Faulty(RetryListener):
    before_attempt = after_attempt = gave_up = staticmethod(failing)


SERVED: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "raise_on_status": ([], {"raise_on_status": True}),
    "one attempt": ([], {"max_attempts": 1, "raise_on_status": True}),
    "a wait too long": ([], {"backoff": 5, "max_wait": 1}),
    "cancelled": ([], {"backoff": 5, "block": {"cancel": threading.Event()}}),
    "scopes of one's own": ([], {"scope": lambda request: request.url, "raise_on_status": True}),
    "published bucket": ([], {"scope": lambda request: request.url, "raise_on_status": True, "quota": 0}),
    "adaptive": ([], {"scope": lambda request: request.url, "mode": "adaptive", "raise_on_status": True}),
    "a strategy of one's own": ([], {"strategy": lambda: Guide(ValueError("no")), "raise_on_status": True}),
    "a bad scope": ([], {"scope": lambda request: None}),
    "a scope that fails": ([], {"scope": failing}),
    "a bad key": ([], {"method": "POST", "idempotency_key": lambda request: f"\n{SECRET}"}),
    "a key that fails": ([], {"method": "POST", "idempotency_key": failing}),
    "a classifier that fails": ([], {"classifiers": [classifier(failing)]}),
    "validate fails": ([Reply(200, headers=HEADERS, body=BODY)], {"validate": failing}),
    "credentials fail": ([Reply(401, headers=HEADERS, body=BODY)], {"on_unauthorized": failing}),
    "bad credentials": ([Reply(401, headers=HEADERS, body=BODY)], {"on_unauthorized": lambda response: SECRET}),
    "a backoff that fails": ([], {"backoff": failing}),
    "a generator that fails": ([], {"data": partial(rows, BODY)}),
    "rows that fail": ([], {"data": lambda: iter(rows(BODY, BODY, error=OSError))}),
    "a file that fails": ([], {"data": Broken}),
    "an upload that nobody reads": ([StopReading()], {"data": lambda: BODY * 1_000_000, "timeout": 0.2}),
    "an upload that is reset": ([StopReading(0)], {"data": lambda: BODY * 1_000_000, "max_attempts": 1}),
    "a listener that fails": ([], {"listeners": [Faulty()]}),
    "a body that cannot be sent again": ([], {"data": lambda: iter([BODY]), "raise_on_status": True}),
    "a deadline header": ([], {"deadline_header": "X-Deadline", "operation_timeout": 0.001}),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SERVED)
def test_whatever_ends_a_call(name: str, stream: bool) -> None:
    """So it is with each way in which a call ends, and with whatever the program's own functions raise."""
    script, options = SERVED[name]
    options = {key: value() if key in ("data", "strategy") else value for key, value in options.items()}
    block = options.pop("block", {})
    for event in block.values():
        event.set()
    with FaultServer(script, default=Reply(503, headers=HEADERS, body=BODY)) as server:
        assert call(server.url, stream=stream, block=block, **options) is not None


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("status", [407, 502])
def test_a_proxy_that_refuses(status: int, scheme: str) -> None:
    """A proxy's user and password are not in it, either."""
    with FaultProxy([Reply(status, headers=HEADERS, body=BODY)] * 9) as proxy:
        url = proxy.url.replace("://", f"://user:{SECRET}@")
        call(f"{scheme}://127.0.0.1:9", proxies={scheme: url}, operation_timeout=2, raise_on_status=True)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("kind", ["http", "https", "socks5", "socks5h", "socks4"])
def test_a_proxy_that_is_not_there(kind: str, scheme: str) -> None:
    """Nor where it does not listen."""
    with refusing_port() as port:
        url = f"{kind}://user:{SECRET}@127.0.0.1:{port}"
        assert call(f"{scheme}://127.0.0.1:9", proxies={scheme: url}) is not None
        assert call(f"{scheme}://127.0.0.1:9", proxies={scheme: url}, operation_timeout=5) is not None


def refused(sock: socket.socket, data: bytes, number: int) -> None:
    sock.sendall(b"\x05\xff" if number == 0 else data)


def test_a_socks_proxy_that_refuses_credentials() -> None:
    """Nor where it takes none."""
    with SocksProxy(refused) as proxy:
        url = f"socks5://user:{SECRET}@127.0.0.1:{proxy.port}"
        assert call("http://127.0.0.1:9", proxies={"http": url}, operation_timeout=5) is not None
        assert call("http://127.0.0.1:9", proxies={"http": url}) is not None


@pytest.mark.parametrize("options", [{}, {"operation_timeout": 5}, {"deadline_header": "X-Deadline"}], ids=str)
def test_a_server_that_is_not_there(options: dict[str, Any]) -> None:
    """A connection that is refused, one that is looked for, and an interruption."""
    with refusing_port() as port:
        assert call(f"http://127.0.0.1:{port}", **options) is not None
        assert call(f"http://localhost:{port}", **options) is not None
        assert call("http://name.invalid", **options) is not None


def test_an_interrupted_wait() -> None:
    """Ctrl-C leads through our frames, too."""
    clock = FakeClock()
    clock.sleep = failing  # type: ignore[method-assign]
    with FaultServer(default=Reply(503, headers=HEADERS, body=BODY)) as server:
        assert call(server.url, backoff=1, clock=clock) is not None


def test_a_strategy_that_is_driven_by_hand() -> None:
    """A scope that a program names by a URL is in no repr of a token, and not in the error of one that is refused."""
    strategy = StandardRetryStrategy(max_attempts=2)
    scope = f"http://user:{SECRET}@x.test/?{SECRET}"
    token = strategy.acquire_initial_retry_token(token_scope=scope)
    error: Any = requests.exceptions.ConnectionError(f"Max retries exceeded with url: {scope}")
    token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
    with pytest.raises(RetryError) as caught:
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
    assert SECRET not in f"{token!r} {strategy!r} {strategy.snapshot()!r} {caught.value!r}"
    assert set() == objects_with_it()


def test_what_listeners_and_classifiers_are_given() -> None:
    """Events, outcomes, verdicts and the history of a call have none in their reprs while a program keeps them."""
    kept: list[Any] = []
    ears = SimpleNamespace(**{name: kept.append for name in vars(RetryListener) if not name.startswith("_")})
    options = {"listeners": [ears], "classifiers": [classifier(lambda outcome: kept.append(outcome))]}
    with FaultServer(default=Reply(503, headers=HEADERS, body=BODY)) as server:
        error = call(server.url, raise_on_status=True, **options)
    assert kept
    assert SECRET not in f"{kept!r} {retry_history(error)!r} {retry_history(error).to_dict()!r}"
