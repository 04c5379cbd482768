"""The claims of docs/howto/move-from-urllib3-retry.md, beside urllib3's own retries."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import NewConnectionError
from urllib3.util.retry import Retry

from requests_smithy_retry import ErrorKind, RetryAction, RetryAdapter, RetryConfigError, classifier
from requests_smithy_retry.classifiers import RetryIndicated
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.testing import ScriptedReply as Scripted
from tests.faults import FaultServer, Reply, refusing_port
from tests.support import scripted, send, session_with

pytestmark = pytest.mark.real_time

PAGE = (Path(__file__).resolve().parents[2] / "docs/howto/move-from-urllib3-retry.md").read_text(encoding="utf-8")
METHODS = [name for name, item in vars(Retry).items() if not name.startswith("__") and callable(item)]


def counted(adapter: HTTPAdapter, reply: Reply, method: str = "GET") -> int:
    """Count the requests to a server that always gives the same answer."""
    with FaultServer(default=reply) as server:
        try:
            session_with(adapter).request(method, server.url)
        except requests.exceptions.RetryError:
            pass
        return len(server.requests)


def ours(max_retries: Any) -> RetryAdapter:
    return RetryAdapter(max_retries=max_retries, quota=None, clock=FakeClock())


class TestANumber:
    @pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
    def test_it_is_our_own_policy(self, status):
        """A number means our own policy, not that of ``Retry(3)``, which is urllib3's."""
        adapters = HTTPAdapter(max_retries=3), ours(Retry(3)), ours(3)
        assert [1, 1, 4] == [counted(adapter, Reply(status)) for adapter in adapters]
        post = 4 if status in (408, 425, 429) else 1
        assert [1, 1, post] == [counted(adapter, Reply(status), "POST") for adapter in adapters]

    def test_a_413_with_a_hint(self):
        """It is temporary, as in urllib3; with a number, no seconds are no hint."""
        tries = (HTTPAdapter(max_retries=3), "0"), (ours(Retry(3)), "0"), (ours(3), "1"), (ours(3), "0")
        assert [4, 4, 4, 1] == [counted(adapter, Reply(413, {"Retry-After": hint})) for adapter, hint in tries]


class TestDifferences:
    @pytest.mark.parametrize("retry", [Retry(False), Retry(3, connect=False)])
    def test_false_lets_urllib3s_own_exception_through(self, retry):
        """With False, urllib3 raises its own exception; here it is a requests.ConnectionError."""
        with refusing_port() as port:
            for adapter, expected in ((HTTPAdapter(max_retries=retry), NewConnectionError), (ours(retry), IOError)):
                with pytest.raises(expected) as caught:
                    session_with(adapter).get(f"http://127.0.0.1:{port}/")
        assert type(caught.value) is requests.ConnectionError

    def test_methods_in_lower_case(self):
        """Methods in lower case match nothing in urllib3, and match here."""
        retry = Retry(2, status_forcelist=[503], allowed_methods=["get"])
        assert (1, 3) == (counted(HTTPAdapter(max_retries=retry), Reply(503)), counted(ours(retry), Reply(503)))

    def test_an_untrusted_certificate(self):
        """An untrusted certificate costs one handshake here, and four with urllib3's retries."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pytest.importorskip("trustme").CA().issue_cert("127.0.0.1").configure_cert(context)
        handshakes = []
        for adapter in (HTTPAdapter(max_retries=Retry(3)), ours(Retry(3))):
            with FaultServer(tls=context) as server:
                with pytest.raises(requests.exceptions.SSLError):
                    session_with(adapter).get(server.url)
                handshakes.append(server.connections)
        assert [4, 1] == handshakes

    def test_the_error_of_a_status(self):
        """Both errors have the same type and reason; ours has the response, and no query."""
        causes = []
        with FaultServer(default=Reply(503)) as server:
            for adapter in (
                HTTPAdapter(max_retries=Retry(1, status_forcelist=[503])),
                ours(Retry(1, status_forcelist=[503])),
            ):
                with pytest.raises(requests.exceptions.RetryError) as caught:
                    session_with(adapter).get(f"{server.url}/things?key=secret")
                causes.append(caught.value.args[0])
        theirs, own = causes
        assert str(theirs.reason) == str(own.reason) == "too many 503 error responses"
        assert (theirs.url, own.url) == ("/things?key=secret", "/things")
        assert str(own).startswith(str(theirs).replace("?key=secret", ""))
        assert (503, True) == (caught.value.response.status_code, "secret" in str(theirs))


class TestOverriddenMethods:
    @pytest.mark.parametrize("name", METHODS)
    def test_each_is_refused_by_name_or_decides_nothing(self, name):
        """Each override is refused by name or has no effect, and the page names each that people override."""
        kind = type("Own", (Retry,), {name: lambda *_, **__: None})
        if name in ("new", "from_int"):
            assert 4 == RetryAdapter(max_retries=kind(3)).strategy.max_attempts
        else:
            with pytest.raises(RetryConfigError, match=f"Own overrides {name}"):
                RetryAdapter(max_retries=kind(3))
        assert f"`{name}`" in PAGE or name in ("_sleep_backoff",)

    def test_the_pages_own_code(self):
        """It runs, and the waits are squares."""
        space: dict[str, Any] = {"requests": requests}
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
            exec(block, space)
        waits = eval(re.search(r"`backoff=(lambda [^`]*)`", PAGE)[1])  # type: ignore[index]
        assert [1, 4, 9, 60] == [waits(attempt, None) for attempt in (1, 2, 3, 50)]

    def test_a_long_hint_is_shortened(self):
        """By a classifier that reads it, with hints switched off."""

        @classifier
        def at_most_20_seconds(outcome, previous):
            hint = "" if outcome.response is None else outcome.response.headers.get("Retry-After", "")
            if hint.isdigit() and isinstance(previous, RetryIndicated):
                return RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, min(int(hint), 20))
            return None

        adapter = scripted(
            Scripted(503, {"Retry-After": "600"}),
            Scripted(503, {"Retry-After": "7"}),
            200,
            max_retries=Retry(total=5, status_forcelist=[429, 503], respect_retry_after_header=False),
            classifiers=[at_most_20_seconds],
        )
        send(adapter)
        assert [20, 7] == adapter.clock.sleeps
