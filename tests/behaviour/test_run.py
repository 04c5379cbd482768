"""Running a program that is not changed (contract 10.5), beside python itself."""

import os
import py_compile
import signal
import subprocess
import sys
import tempfile
import zipapp
from collections.abc import Iterator
from pathlib import Path

import pytest

from requests_smithy_retry.testing import FaultServer, Reply
from tests.support import LEFT, ROOT, python

pytestmark = pytest.mark.real_time

PROGRAM = """\
import atexit, os, sys

def what():
    word = sys.argv[1]
    if word == "raise":
        raise ValueError("oops")
    if word == "exit":
        sys.exit(7)
    if word == "message":
        sys.exit("gone")
    if word == "interrupt":
        raise KeyboardInterrupt
    if word == "late":
        atexit.register(lambda: print(sys.modules["__main__"].what is what))

print(sys.argv, __name__, __file__, sys.path[0], __spec__ and __spec__.name)
x: "undefined" = 1
what()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(PROGRAM)
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "bad.py").write_text("x = (\n")
    return tmp_path


def run(folder, *arguments, starter=("-m", "requests_smithy_retry")):
    return python(*starter, "run", *arguments, cwd=folder)


SAID = "requests-smithy-retry: "
"""The beginning of our own lines on stderr."""
NO_SESSION = f"{SAID}this process made no session of requests, so nothing had retries\n"

RUNPY = ("runpy", "_run_", "exec(code, run_globals)")
"""Words that stand in the traceback lines of Python's own frames."""

CASES = [[*how, word] for how in (["program.py"], ["-m", "program"]) for word in ("a", "raise")]
CASES += [["program.py", word] for word in ("exit", "interrupt", "message", "late")] + [
    ["-m", "package", "raise"],
    ["bad.py"],
]


@pytest.fixture(params=["-m", pytest.param("script", marks=pytest.mark.once)])
def starter(request, folder):
    """The arguments by which the interpreter starts us: as a module, or as an installed command does it."""
    if request.param == "-m":
        return ["-m", "requests_smithy_retry"]
    script = folder / "bin" / "requests-smithy-retry"
    script.parent.mkdir()
    script.write_text("import sys\nfrom requests_smithy_retry.cli import main\nsys.exit(main())\n")
    return [str(script)]


@pytest.mark.untraced
@pytest.mark.parametrize("arguments", CASES, ids=" ".join)
def test_a_program_runs_as_under_python(arguments, starter, folder):
    """Arguments, __main__, __file__, the path, exit status and traceback are the same; a line of ours follows."""
    plain = python(*arguments, cwd=folder)
    ours = run(folder, *arguments, starter=starter)
    assert (plain.returncode, plain.stdout) == (ours.returncode, ours.stdout)
    # python -m shows two lines of runpy above the program's; our command does not.
    shown = [line for line in plain.stderr.splitlines() if not any(word in line for word in RUNPY)]
    assert [line for line in shown if "^^^" not in line] == [
        line for line in ours.stderr.removesuffix(NO_SESSION).splitlines() if "^^^" not in line
    ]
    assert ours.stderr.endswith(NO_SESSION)


@pytest.mark.parametrize(
    ("arguments", "status", "out", "err"),
    [
        ([], 2, "", "usage: "),
        (["-x", "program.py"], 2, "", "usage: "),
        (["-m"], 2, "", "usage: "),
        (["--mounted"], 2, "", "usage: "),
        (["--mounted=some", "program.py"], 2, "", "mounted='some' (from --mounted): one of 'none', 'plain', 'all'"),
        (["--mounted", "all"], 2, "", "usage: "),
        (["--help"], 0, "usage: ", ""),
        (["absent.py"], 2, "", "can't open file"),
    ],
)
def test_bad_usage_is_told_on_stderr(arguments, status, out, err, folder):
    """The status is 2, as for python; help goes to stdout."""
    done = run(folder, *arguments)
    assert (status, True, True) == (done.returncode, out in done.stdout, err in done.stderr)


def test_a_signal_ends_the_program_as_under_python(folder):
    """SIGTERM kills it: nothing of ours is in between."""
    (folder / "wait.py").write_text("import time; print('ready', flush=True); time.sleep(60)")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "requests_smithy_retry", "run", "wait.py"]
    with subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE) as process:
        assert b"ready\n" == process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert -signal.SIGTERM == process.wait(timeout=600)


def test_the_program_has_retries_by_the_environment(folder, monkeypatch):
    """A program that knows nothing of us rides through two 503s, with attempts from the environment."""
    (folder / "app.py").write_text("import sys, requests; print(requests.get(sys.argv[1]).status_code)")
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "4")
    with FaultServer([Reply(503)] * 3) as server:
        assert "503\n" == python("app.py", server.url, cwd=folder).stdout
        assert "200\n" == run(folder, "app.py", server.url).stdout
        assert 1 + 3 == len(server.requests)


def test_the_closing_line_counts_what_sessions_did_that_are_gone(folder):
    """``requests.get`` makes a session for each call."""
    program = "import requests, sys; [requests.get(sys.argv[1]) for _ in range(4)]"
    (folder / "app.py").write_text(program)
    with FaultServer([Reply(503)]) as server:
        said = run(folder, "app.py", server.url).stderr
    assert "4 operations: 1 retried (1 retries), 1 saved, 0 lost, " in said


MOUNTS = """\
import multiprocessing, sys
from requests import Session
from requests.adapters import HTTPAdapter

def kinds(_=None):
    session = Session()
    session.mount("https://nothing", HTTPAdapter())
    session.mount("https://twice", HTTPAdapter(max_retries=2))
    return [type(session.get_adapter(url)).__name__[:5] for url in ("https://nothing", "https://twice")]

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(sys.argv[1:], kinds(), pool.map(kinds, [1])[0])
"""


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("option", "variable", "kinds"),
    [
        ([], "", ["Retry", "HTTPA"]),
        ([], "all", ["Retry", "Retry"]),
        (["--mounted=none"], "all", ["HTTPA", "HTTPA"]),
        pytest.param(["--mounted", "All"], "none", ["Retry", "Retry"], marks=pytest.mark.once),
    ],
)
def test_adapters_that_a_program_mounts_are_reached(option, variable, kinds, folder, monkeypatch):
    """``--mounted`` says which, else the environment; in a process that is started by spawn, too."""
    (folder / "mounts.py").write_text(MOUNTS)
    monkeypatch.setenv("SMITHY_RETRY_MOUNTED", variable)
    done = run(folder, *option, "mounts.py", "--mounted=x")
    assert f"['--mounted=x'] {kinds} {kinds}\n" == done.stdout, done.stderr


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("options", "word", "end"),
    [
        ([], "", ["none of 2 adapters had retries: --mounted=all would reach 2 more (run --list names each)"]),
        ([], "fork", ["none of 2 adapters had retries: --mounted=all would reach 2 more (run --list names each)"]),
        ([], "close", []),
        ([], "none", []),
    ],
)
def test_a_program_that_is_not_reached_is_told_of_at_once_and_at_the_end(options, word, end, folder):
    """One line when its adapters are mounted, one at its end, in its own process alone, and if there is a stderr."""
    (folder / "left.py").write_text(LEFT)
    done = run(folder, *options, "left.py", *filter(None, [word]))
    left = "requests's HTTPAdapter with Retry(2), which mounted='all' would translate"
    at_once = [f"{SAID}nothing in this program has retries so far; left alone: {left}", "mounted"]
    assert (0, [*at_once, *(SAID + line for line in end)]) == (done.returncode, done.stderr.splitlines())


SEES = """\
import sys
by_hashlib = {"socket"} if sys.implementation.name == "pypy" else set()
assert not ({"requests", "urllib3", "ssl", "socket"} - by_hashlib) & sys.modules.keys(), sorted(sys.modules)
if len(sys.argv) > 1:
    __import__(sys.argv[1])
    import requests
    print(type(requests.Session().get_adapter("https://")).__name__)
print("done")
"""


@pytest.mark.untraced
@pytest.mark.parametrize("variables", [{}, {"SMITHY_RETRY_MAX_ATTEMPTS": "5", "SMITHY_RETRY_TIMEOUT": "3, 7"}])
def test_nothing_is_imported_before_the_program_does_it(variables, starter, folder, monkeypatch):
    """A program that never uses requests never loads it, also with a policy; one that does has retries at once."""
    (folder / "sees.py").write_text(SEES)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    reached = f"{SAID}1 of 1 adapter had retries\n"
    for arguments, out, said in (
        ([], "done\n", NO_SESSION),
        (["requests"], "RetryAdapterAround\ndone\n", reached),
        (["ssl"], "RetryAdapterAround\ndone\n", reached),
    ):
        done = run(folder, "sees.py", *arguments, starter=starter)
        assert (out, said) == (done.stdout, done.stderr)


SPAWNS = """\
import multiprocessing, sys

def kind(depth):
    if depth:
        with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
            return pool.map(kind, [depth - 1])[0]
    import requests
    return type(requests.Session().get_adapter("https://")).__name__

class Worker(multiprocessing.Process):
    daemon = False

def work(queue):
    queue.put(kind(0))

if __name__ == "__main__":
    print(kind(1))
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get(), process.join())
"""


@pytest.mark.once
@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_processes_that_are_not_forked_have_retries_too(how, folder):
    """Processes of a pool and single ones get a RetryAdapter; nothing else differs from a run without us."""
    (folder / "spawns.py").write_text(SPAWNS)
    plain = python("spawns.py", how, cwd=folder)
    ours = run(folder, "spawns.py", how)
    assert (0, plain.stdout.replace("HTTPAdapter", "RetryAdapterAround")) == (ours.returncode, ours.stdout), ours.stderr
    assert "HTTPAdapter\nHTTPAdapter None\n" == plain.stdout


COUNTS = """\
import multiprocessing, os, sys

def work(url):
    import requests
    from requests.adapters import HTTPAdapter
    session = requests.Session()
    session.mount("https://", HTTPAdapter(max_retries=2))
    assert 200 == session.get(url).status_code

if __name__ == "__main__":
    _, how, url = sys.argv
    if how == "os.fork":
        if os.fork() == 0:
            work(url)
            os._exit(0)
        os.wait()
    elif how == "sys.exit":
        import requests
        session = requests.Session()
        if os.fork() == 0:
            assert 200 == session.get(url).status_code
            work(url)
            sys.exit()
        os.wait()
    else:
        process = multiprocessing.get_context(how).Process(target=work, args=(url,))
        process.start()
        process.join()
        assert 0 == process.exitcode
"""


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder with a short path: that of a forkserver's socket in it has at most 107 bytes."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.once
@pytest.mark.untraced
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.parametrize(
    ("how", "processes", "operations"),
    [("os.fork", 1, 1), ("sys.exit", 2, 2), ("fork", 1, 1), ("spawn", 1, 1), ("forkserver", 1, 1)],
)
def test_what_the_processes_of_a_program_did_is_counted(how, processes, operations, folder, temporary, monkeypatch):
    """In the closing line of the program's own process; the others say nothing, and leave nothing."""
    monkeypatch.setenv("TMPDIR", str(temporary))
    (folder / "counts.py").write_text(COUNTS)
    with FaultServer([Reply(503), Reply(200)]) as server:
        done = run(folder, "counts.py", how, server.url)
        assert 1 + operations == len(server.requests)
    adapters = f"{processes} of {processes + 1} adapters{' of 2 processes' if processes > 1 else ''}"
    first, second = done.stderr.splitlines()
    assert f"{SAID}{adapters} had retries: --mounted=all would reach 1 more (run --list names each)" == first
    assert second.startswith(f"{SAID}{operations} operations: 1 retried (1 retries), 1 saved, 0 lost, ")
    assert (0, []) == (done.returncode, [each.name for each in temporary.iterdir() if "smithy" in each.name])


@pytest.mark.untraced
def test_sitecustomize_reaches_commands_too(folder):
    """The two lines of the page, in a file on the path of a program that is started as a command."""
    (folder / "sitecustomize.py").write_text("from requests_smithy_retry import install\ninstall(mounted='plain')\n")
    (folder / "app.py").write_text("import sys, requests; print(requests.get(sys.argv[1]).status_code)")
    with FaultServer([Reply(503), Reply(200)]) as server:
        path = os.pathsep.join([str(folder), str(ROOT)])
        done = python("app.py", server.url, cwd=folder, PYTHONPATH=path)
    assert "200\n" == done.stdout, done.stderr


POSTS = """import sys, requests
from urllib3.util import Retry
session = requests.Session()
retry = Retry(3, status_forcelist=[503], allowed_methods=None, backoff_factor=0.001)
session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
print(session.post(sys.argv[1]).status_code)
"""


@pytest.mark.untraced
def test_posts_that_are_not_sent_again_any_more_are_told_of(folder, monkeypatch):
    """With the variable that brings them back, after which the last line says what that risks."""
    (folder / "posts.py").write_text(POSTS)
    with FaultServer() as server:

        def last_lines() -> list[str]:
            server.script([Reply(503), Reply(200)])
            done = run(folder, "--mounted=replace", "posts.py", server.url)
            return [done.stdout.strip(), *(line.removeprefix(SAID) for line in done.stderr.splitlines()[-2:])]

        status, _, said = last_lines()
        variable, _, value = said.partition("not: ")[2].partition(" ")[0].partition("=")
        assert ("503", "the own Retry of 1 adapter sent PATCH and POST again, ") == (status, said[:54])
        assert said.endswith(" brings it back")
        monkeypatch.setenv(variable, value)
        status, did, risk = last_lines()
        assert ("200", True) == (status, did.startswith("1 operations: 1 retried"))
    by = "environment variable SMITHY_RETRY_ALLOWED_METHODS"
    assert f"PATCH and POST requests are sent again even if the server may have applied them, by {by}" == risk


@pytest.mark.once
@pytest.mark.parametrize("first", ["policy", "testing"])
def test_a_program_may_import_us_first(first, folder):
    """A program may import our modules first; its sessions have retries all the same."""
    (folder / "first.py").write_text(
        f"import requests_smithy_retry.{first} as first, requests, sys\n"
        "print(first.__name__, type(requests.Session().get_adapter('https://')).__name__)"
    )
    done = run(folder, "first.py")
    assert f"requests_smithy_retry.{first} RetryAdapterAround\n" == done.stdout
    assert f"{SAID}1 of 1 adapter had retries\n" == done.stderr


@pytest.mark.parametrize("program", ["package", "archive.pyz", "compiled.pyc"])
def test_the_path_is_that_of_python(program, folder):
    """A folder, an archive and a compiled file get Python's own path, without the current folder in front."""
    source = folder / "path.py"
    source.write_text("from sys import argv, path; print(path[0], path.count(path[0]), len(path), argv[1:], __file__)")
    (folder / "package" / "__main__.py").write_text(source.read_text())
    zipapp.create_archive(folder / "package", folder / "archive.pyz")
    py_compile.compile(str(source), str(folder / "compiled.pyc"))
    plain, ours = python(program, "a", cwd=folder), run(folder, program, "a")
    same = os.path.basename if sys.version_info < (3, 11) else str  # there python has the path as it was given
    assert [same(word) for word in plain.stdout.split()] == [same(word) for word in ours.stdout.split()] != []


IMPORTS_NOTHING = """\
import sys
print(*sorted(name for name in sys.modules if name.startswith("requests_smithy_retry") or name in %r))
"""
SLOW = ["contextlib", "dataclasses", "functools", "inspect", "logging", "pkgutil", "re", "runpy", "threading", "typing"]


def test_a_program_without_requests_pays_next_to_nothing(folder):
    """Few small files of ours are loaded, and no module of the standard library that takes long."""
    (folder / "names.py").write_text(IMPORTS_NOTHING % SLOW)
    (folder / "start.py").write_text(
        "import sys; sys.argv[:] = ['x', 'run', 'names.py']\nfrom requests_smithy_retry.cli import main\nmain()"
    )
    names = ("cli", "features", *(f"features.everywhere{name}" for name in ("", ".children", ".run")))
    ours = ["requests_smithy_retry", *(f"requests_smithy_retry.{name}" for name in names)]
    plain, started = (python("-S", name, cwd=folder).stdout.split() for name in ("names.py", "start.py"))
    assert sorted([*plain, *ours]) == started
