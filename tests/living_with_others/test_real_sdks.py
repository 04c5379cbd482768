"""Two SDKs by other people that use requests, unchanged, against a loopback server."""

import pytest
import requests

from requests_smithy_retry import install, uninstall
from requests_smithy_retry.testing import FaultServer, Reply
from tests.support import python

hvac = pytest.importorskip("hvac")
gitlab = pytest.importorskip("gitlab")

pytestmark = pytest.mark.real_time

JSON = {"Content-Type": "application/json"}
SECRET = Reply(200, headers=JSON, body=b'{"data": {"data": {"key": "value"}, "metadata": {}}}')
PROJECT = Reply(200, headers=JSON, body=b'{"id": 7, "name": "things"}')

READ_SECRET = """
import hvac, sys
client = hvac.Client(url=sys.argv[1], token="t")
print(client.secrets.kv.v2.read_secret_version("a", raise_on_deleted_version=True)["data"]["data"]["key"])
"""
READ_PROJECT = """
import gitlab, sys
print(gitlab.Gitlab(sys.argv[1], private_token="t").projects.get(7).name)
"""
PROGRAMS = [("hvac", READ_SECRET, SECRET, "value\n"), ("gitlab", READ_PROJECT, PROJECT, "things\n")]


@pytest.fixture
def _installed():
    plain = requests.Session.__init__
    install(backoff=0)
    yield
    uninstall()
    assert plain is requests.Session.__init__


@pytest.mark.usefixtures("_installed")
def test_hvac_has_retries_through_install():
    """The Vault client rides through a 503 that it would have raised for."""
    with FaultServer([Reply(503), SECRET]) as server:
        client = hvac.Client(url=server.url, token="t")
        answer = client.secrets.kv.v2.read_secret_version("a", raise_on_deleted_version=True)
        assert ("value", 2) == (answer["data"]["data"]["key"], len(server.requests))


@pytest.mark.usefixtures("_installed")
def test_python_gitlab_has_retries_through_install():
    """The GitLab client, too, as its session is a plain requests.Session."""
    with FaultServer([Reply(503), Reply(502), PROJECT]) as server:
        assert "things" == gitlab.Gitlab(server.url, private_token="t").projects.get(7).name
        assert 3 == len(server.requests)


@pytest.mark.once
@pytest.mark.parametrize(("name", "program", "answer", "output"), PROGRAMS, ids=[row[0] for row in PROGRAMS])
def test_a_program_with_an_sdk_has_retries_through_run_and_environment(name, program, answer, output, tmp_path):
    """The program is unchanged: run gives it retries, and variables set their number or switch them off."""
    (tmp_path / "program.py").write_text(program)
    policy = {"SMITHY_RETRY_MAX_ATTEMPTS": "4", "SMITHY_RETRY_MAX_BACKOFF": "10ms"}
    with FaultServer([Reply(503)] * 3 + [answer]) as server:
        command = ["-m", "requests_smithy_retry", "run", "program.py", server.url]
        done = python(*command, cwd=tmp_path, **policy)
        assert (output, 4) == (done.stdout, len(server.requests)), done.stderr
        server.reset()
        done = python(*command, cwd=tmp_path, **policy, SMITHY_RETRY_ENABLED="false")
        assert (1, 1) == (done.returncode, len(server.requests))
