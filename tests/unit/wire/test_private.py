"""The private names of urllib3, requests and the standard library: each is listed, and the adapter can do without."""

from __future__ import annotations

import ast
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from urllib3.connectionpool import HTTPConnectionPool

import requests_smithy_retry
from requests_smithy_retry import RetryAdapter, RetryConfigWarning
from requests_smithy_retry.wire import private
from requests_smithy_retry.wire.pools import PreparingPool
from tests.faults import FaultServer, Reply
from tests.support import python

PACKAGE = Path(requests_smithy_retry.__file__).parent

OPTIONAL: dict[str, tuple[str, str]] = {
    "_container": ("urllib3/_collections.py", "has the key of a pool, which is made only once"),
    "_sock_shutdown": ("urllib3/response.py", "goes along with a connection"),
    "_store": ("requests/structures.py", "has the names of a response's fields, in lower case"),
    "_decoders": ("urllib3/response.py", "are those of several codings"),
    "_has_decoded_content": ("urllib3/response.py", "tells whether a chunk came"),
    "_decoded_buffer": ("urllib3/response.py", "has what was decoded and not yet handed out"),
    "_obj": ("urllib3/response.py", "is the decoder of one coding"),
    "_state": ("urllib3/response.py", "of gzip: what follows the end is swallowed"),
    "_socks_options": ("urllib3/contrib/socks.py", "names a SOCKS proxy"),
    "_SUPPRESS_INSTRUMENTATION_KEY": (
        "opentelemetry/context/__init__.py",
        "keeps OpenTelemetry from telling of an attempt twice",
    ),
}
"""Those that are used where they are there, and nothing hangs on; urllib3 has two since 2.0 and 2.3."""


def forget() -> None:
    private._missing_in.cache_clear()
    private._found_all = False


@pytest.fixture(autouse=True)
def _look_again() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.mark.filterwarnings("ignore:not found in urllib3")
@pytest.mark.parametrize("name", private.NAMES)
def test_the_installed_releases_have_each_name(name: str) -> None:
    """A release without it fails this test by its name."""
    assert name not in private.missing()


def test_without_one_the_adapter_retries_and_says_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It warns once, at the program's own line, and urllib3 keeps its own pools."""
    monkeypatch.setitem(private.NAMES, "HTTPConnection._gone", ("urllib3/connection.py", "was there"))
    with pytest.warns(
        RetryConfigWarning, match=r"not found in urllib3 .*: HTTPConnection\._gone\. Retries work"
    ) as seen:
        adapters = [RetryAdapter(max_backoff=0), RetryAdapter()]
    assert [__file__] == [each.filename for each in seen]
    assert [HTTPConnectionPool] * 2 == [each.poolmanager.pool_classes_by_scheme["http"] for each in adapters]
    with FaultServer([Reply(503), Reply(200)]) as server, requests.Session() as session:
        session.trust_env = False
        session.mount("http://", adapters[0])
        assert 200 == session.get(server.url).status_code


def test_what_was_missing_for_a_while_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's stand-in may lack a name; an adapter that is made afterwards has pools of ours again."""

    class Other(socket.SocketIO):
        def __init__(self, *arguments: object) -> None:
            """Have nothing."""

        def close(self) -> None:
            """Close nothing: Python 3.13 tells of an error in it when the object goes."""

    with monkeypatch.context() as patch:
        patch.setattr(socket, "SocketIO", Other)
        with pytest.warns(RetryConfigWarning, match=r"SocketIO\._sock"):
            RetryAdapter()
        assert not private.are_known()
    assert private.are_known()
    assert issubclass(RetryAdapter().poolmanager.pool_classes_by_scheme["http"], PreparingPool)


FORBIDDEN = r"""
import errno, socket, sys, warnings

import requests

plain = socket.socket
kind, error, way = eval(sys.argv[1])

class Forbidden(plain):
    def __new__(cls, *arguments, **options):
        raise error

def forbidden(*arguments, **options):
    raise error

socket.socket = Forbidden if kind == "class" else forbidden
warnings.simplefilter("error")
from requests_smithy_retry import install, mount
if way == "mount":
    session = mount(requests.Session(), max_backoff=0)
else:
    install(max_backoff=0)
    session = requests.Session()
socket.socket = plain

from requests_smithy_retry.testing import FaultServer, CutBody, Reply
session.trust_env = False
with FaultServer([Reply(503), CutBody(Reply(200, body=b"x" * 99)), Reply(200, body=b"well")]) as server:
    print(session.get(server.url, timeout=30).text)
"""
"""Makes a session while no socket can be made, and sends with it once one can."""


@pytest.mark.real_time  # the child is waited for
@pytest.mark.parametrize(
    ("kind", "error", "way"),
    [
        ("class", "RuntimeError('no')", "mount"),
        ("class", "OSError(errno.EMFILE, 'no')", "install"),
        ("function", "PermissionError(1, 'no')", "mount"),
        ("function", "RuntimeError('no')", "install"),
    ],
)
def test_a_session_can_be_made_where_no_socket_can(kind: str, error: str, way: str, tmp_path: Path) -> None:
    """As with plain requests, whoever forbids it; a 503 and a cut body are retried once sockets are allowed."""
    done = python("-c", FORBIDDEN, f"({kind!r}, {error}, {way!r})", cwd=tmp_path)
    assert ("well\n", "") == (done.stdout, done.stderr)


RENAMED = r"""
import importlib.machinery, re, sys, warnings

renamed = re.compile(rf"\b(_HTTPConnection)?{sys.argv[1]}\b")
plain = importlib.machinery.SourceFileLoader.get_code

def get_code(self, module):
    if module.partition(".")[0] not in ("urllib3", "requests", "http", "socket", "opentelemetry"):
        return plain(self, module)
    path = self.get_filename(module)
    return self.source_to_code(renamed.sub(lambda found: found[0] + "_of_late", self.get_data(path).decode()), path)

assert not {"urllib3", "requests", "http", "socket"} & set(sys.modules), "imported before it could be renamed"
importlib.machinery.SourceFileLoader.get_code = get_code
import requests
from requests_smithy_retry import mount, retry_history
from requests_smithy_retry.testing import FaultServer, Reply

ANSWERS = [Reply(503, body=b"ill"), Reply(200, body=b"well")]
with warnings.catch_warnings(record=True) as seen, FaultServer(ANSWERS * 2) as server:
    warnings.simplefilter("always")
    for stream in (False, True):
        with mount(requests.Session(), max_backoff=0, operation_timeout=60) as session:
            response = session.get(server.url, stream=stream)
            print(response.content.decode(), len(retry_history(response).attempts), end=" ")
print(*[each.message for each in seen])
"""
"""Sends to a server that fails once, where every library has another name for the private one that it is given."""


def ends_after_renaming(attribute: str) -> str:
    """What that program prints: the bodies, each with its number of attempts, then the warnings."""
    attribute = attribute.replace("_HTTPConnection__", "__")
    done = subprocess.run([sys.executable, "-c", RENAMED, attribute], capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.once
@pytest.mark.parametrize("name", private.NAMES)
def test_where_a_release_has_another_name_retries_go_on(name: str) -> None:
    """A 503 is retried, streamed or not, and one warning names what is lost."""
    said = ends_after_renaming(name.rpartition(".")[2])
    assert said.startswith("well 2 well 2 not found in urllib3 "), said
    assert name in said
    assert 1 == said.count("not found")


@pytest.mark.once
@pytest.mark.parametrize("name", OPTIONAL)
def test_an_optional_name_is_not_missed(name: str) -> None:
    """All works without a warning."""
    assert "well 2 well 2 \n" == ends_after_renaming(name)


def private_names(tree: ast.AST) -> Iterator[str]:
    """Every private attribute that a module reads or sets, or asks for by its text."""
    for node in ast.walk(tree):
        name: object = getattr(node, "attr", None)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr", "setattr", "delattr"):
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


@pytest.mark.parametrize(
    "source", ["sock._gone", "sock._gone = 1", 'getattr(sock, "_gone", None)', 'hasattr(sock, "_gone")']
)
def test_each_way_to_use_a_private_name_is_seen(source: str) -> None:
    """Read, set, or asked for by its text."""
    assert ["_gone"] == list(private_names(ast.parse(source)))


@pytest.mark.once
def test_every_private_name_of_others_is_listed() -> None:
    """With its reason, in the one module that knows which release lacks it."""
    trees = [ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py") if path.name != "private.py"]
    listed = {name.rpartition(".")[2] for name in private.NAMES} | set(OPTIONAL)
    own = {name for tree in trees for name in own_names(tree)} - listed
    used = {name for tree in trees for name in private_names(tree)}
    assert set() == used - own - listed - {"_replace", "_asdict", "_fields", "_getframe", "_retry_started"}
