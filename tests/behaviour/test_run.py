"""Running a program that is not changed (contract 10.5), beside python itself."""

import atexit
import io
import os
import pickle
import signal
import subprocess
import sys
import types
import zipapp
from pathlib import Path

import pytest
import requests

import requests_smithy_retry
from requests_smithy_retry import RetryAdapter, uninstall
from requests_smithy_retry.features.everywhere import run as run_module
from requests_smithy_retry.testing import FaultServer, Reply
from tests.support import URL

ROOT = Path(requests_smithy_retry.__file__).parent.parent
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


def python(folder, *arguments):
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    environ.pop("COVERAGE_PROCESS_START", None)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environ, capture_output=True, text=True, timeout=600, check=False
    )


SAID = "requests-smithy-retry: "
"""The beginning of our own lines on stderr."""
NO_SESSION = f"{SAID}this process made no session of requests, so nothing had retries\n"

RUNPY = ("runpy", "_run_", "exec(code, run_globals)")
"""Words that stand in the traceback lines of Python's own frames."""

CASES = [[*how, word] for how in (["program.py"], ["-m", "program"]) for word in ("a", "raise", "exit", "interrupt")]
CASES += [["program.py", "message"], ["program.py", "late"], ["-m", "package", "raise"], ["bad.py"]]


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
    plain = python(folder, *arguments)
    ours = python(folder, *starter, "run", *arguments)
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
    done = python(folder, "-m", "requests_smithy_retry", "run", *arguments)
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
        assert "503\n" == python(folder, "app.py", server.url).stdout
        assert "200\n" == python(folder, "-m", "requests_smithy_retry", "run", "app.py", server.url).stdout
        assert 1 + 3 == len(server.requests)


@pytest.fixture
def own_process(monkeypatch):
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "excepthook", lambda *shown: seen.append(shown))
    main = sys.modules["__main__"]
    seen = []
    yield seen
    sys.modules["__main__"] = main
    atexit.unregister(run_module._report)
    uninstall()


@pytest.mark.parametrize("arguments", [["program.py", "raise"], ["-m", "program", "raise"], ["package", "raise"]])
def test_the_traceback_begins_in_the_program(arguments, folder, monkeypatch, own_process):
    """The exception hook is given a traceback without a frame of ours."""
    monkeypatch.chdir(folder)
    sys.modules.pop("program", None)
    with pytest.raises(ValueError, match="oops") as caught:
        run_module.run(arguments)
    # This function stands above, as an installed command's does.
    sys.excepthook(ValueError, caught.value, caught.value.__traceback__)
    ((_, error, shown),) = own_process
    assert (caught.value, "<module>", shown) == (error, shown.tb_frame.f_code.co_name, error.__traceback__)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        *((program, 0) for program in (["program.py", "a"], ["-m", "program", "a"], ["package", "a"])),
        *((["--help"], 0), ([], 2), (["absent.py"], 2), (["-x"], 2)),
    ],
)
def test_run_returns_the_status(arguments, status, folder, monkeypatch, own_process, capsys):
    """0 when the program has ended or help was asked for, 2 for bad usage."""
    monkeypatch.chdir(folder)
    sys.modules.pop("program", None)
    assert status == run_module.run(arguments)
    with pytest.raises(SystemExit, match="7"):
        run_module.run(["program.py", "exit"])


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
    done = python(folder, "-m", "requests_smithy_retry", "run", *option, "mounts.py", "--mounted=x")
    assert f"['--mounted=x'] {kinds} {kinds}\n" == done.stdout, done.stderr


LEFT = """\
import os, sys
from requests import Session
from requests.adapters import HTTPAdapter

session = Session()
for scheme in ("http://", "https://"):
    session.mount(scheme, HTTPAdapter(max_retries=2))
print("mounted", file=sys.stderr)
if sys.argv[1:] == ["fork"] and os.fork() == 0:
    sys.exit()
if sys.argv[1:] == ["close"]:
    sys.stderr.close()
if sys.argv[1:] == ["none"]:
    sys.stderr = None
"""


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("options", "word", "end"),
    [
        ([], "", ["none of 2 adapters had retries: --mounted=all would reach 2 (run --list names each)"]),
        ([], "fork", ["none of 2 adapters had retries: --mounted=all would reach 2 (run --list names each)"]),
        ([], "close", []),
        ([], "none", []),
    ],
)
def test_a_program_that_is_not_reached_is_told_of_at_once_and_at_the_end(options, word, end, folder):
    """One line when its adapters are mounted, one at its end, in its own process alone, and if there is a stderr."""
    (folder / "left.py").write_text(LEFT)
    done = python(folder, "-m", "requests_smithy_retry", "run", *options, "left.py", *filter(None, [word]))
    left = "requests's HTTPAdapter with Retry(2), which mounted='all' would translate"
    at_once = [f"{SAID}nothing in this program has retries so far; left alone: {left}", "mounted"]
    assert (0, [*at_once, *(SAID + line for line in end)]) == (done.returncode, done.stderr.splitlines())


def reported(arguments, capsys):
    """Run a program in this process, report as at its exit, and return our lines."""
    assert 0 == run_module.run(arguments)
    capsys.readouterr()
    run_module._report(os.getpid(), arguments[0] == "--list")
    run_module._report(os.getpid() + 1, False)
    return capsys.readouterr().err.splitlines()


def test_the_report_counts_the_adapters_of_this_process(folder, monkeypatch, own_process, capsys):
    """Without a session there is nothing to count; one of another process is none of its business."""
    monkeypatch.chdir(folder)
    assert [NO_SESSION.strip()] == reported(["program.py", "x"], capsys)
    requests.Session()
    assert [f"{SAID}1 of 1 adapter had retries"] == reported(["program.py", "x"], capsys)


def test_a_dry_run_has_a_line_for_each_kind(folder, monkeypatch, own_process, capsys):
    """In any order with the other option."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SMITHY_RETRY_MOUNTED", "none")
    (folder / "left.py").write_text(LEFT)
    line, listed = reported(["--list", "--mounted", "all", "left.py"], capsys)
    assert f"{SAID}2 of 2 adapters would have retries" == line
    assert listed.startswith(f"{SAID}2 x requests's HTTPAdapter with Retry(2): RetryConfig(")


@pytest.mark.parametrize("stderr", [None, io.StringIO()])
def test_without_a_stderr_nothing_is_told(stderr, monkeypatch):
    """A program may have none, or have closed it."""
    monkeypatch.setattr(sys, "stderr", stderr)
    if stderr is not None:
        stderr.close()
    run_module._tell("this")


@pytest.mark.untraced
def test_a_dry_run_lists_each_adapter(folder):
    """The program runs as it is; the list has the policy that each adapter would have."""
    (folder / "left.py").write_text(LEFT + "print(type(session.get_adapter('http://')).__name__)")
    done = python(folder, "-m", "requests_smithy_retry", "run", "--list", "--mounted=all", "left.py")
    mounted, line, listed = done.stderr.splitlines()
    assert ("HTTPAdapter\n", "mounted", f"{SAID}2 of 2 adapters would have retries") == (done.stdout, mounted, line)
    assert listed.startswith(f"{SAID}2 x requests's HTTPAdapter with Retry(2): RetryConfig(mode='standard' [default], ")
    assert "max_attempts=3 [max_retries]" in listed


def test_a_bad_variable_for_mounted_adapters_is_told(folder, monkeypatch, own_process, capsys):
    """It is told in one line before the program starts, unless retries are switched off."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SMITHY_RETRY_MOUNTED", "some")
    assert 2 == run_module.run(["program.py", "x"])
    assert "mounted='some' (from environment variable SMITHY_RETRY_MOUNTED): " in capsys.readouterr().err
    monkeypatch.setenv("SMITHY_RETRY_ENABLED", "no")
    assert 0 == run_module.run(["program.py", "x"])
    assert 0 == run_module.run(["--mounted=all", "program.py", "x"])


def test_a_bad_policy_is_told_in_one_line(folder, monkeypatch, own_process, capsys):
    """A bad policy is reported in one line, as by every command, and the program does not start."""
    monkeypatch.setenv("SMITHY_RETRY_MAX_ATTEMPTS", "many")
    monkeypatch.chdir(folder)
    assert 2 == run_module.run(["program.py", "x"])
    refusal = "max_attempts='many' (from environment variable SMITHY_RETRY_MAX_ATTEMPTS): a whole number"
    assert ("", f"requests-smithy-retry: {refusal} of 1 or more or None is allowed\n") == capsys.readouterr()


def test_a_safe_path_is_left_as_it_is(folder, monkeypatch, own_process, capsys):
    """With python -P nothing is put in front of the path."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(run_module, "_has_safe_path", lambda: True)
    before = list(sys.path)
    run_module.run(["program.py", "a"])
    assert before == sys.path


SEES = """\
import sys
assert not {"requests", "urllib3", "ssl", "socket"} & sys.modules.keys(), sorted(sys.modules)
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
        (["requests"], "RetryAdapter\ndone\n", reached),
        (["ssl"], "RetryAdapter\ndone\n", reached),
    ):
        done = python(folder, *starter, "run", "sees.py", *arguments)
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


@pytest.mark.untraced
@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_processes_that_are_not_forked_have_retries_too(how, folder):
    """Processes of a pool and single ones get a RetryAdapter; nothing else differs from a run without us."""
    (folder / "spawns.py").write_text(SPAWNS)
    plain = python(folder, "spawns.py", how)
    ours = python(folder, "-m", "requests_smithy_retry", "run", "spawns.py", how)
    assert (0, plain.stdout.replace("HTTPAdapter", "RetryAdapter")) == (ours.returncode, ours.stdout), ours.stderr
    assert "HTTPAdapter\nHTTPAdapter None\n" == plain.stdout


def test_a_child_begins_without_us_where_it_does_not_find_us(monkeypatch):
    """If the child cannot import the library, the preparation data has no effect and its path is unchanged."""
    spawning = types.ModuleType("spawning")
    spawning.get_preparation_data = lambda name: {"name": name}
    run_module._cover_children(spawning)
    data = spawning.get_preparation_data("one")
    called, before = [], list(sys.path)
    monkeypatch.setattr(run_module, "install_when_needed", lambda: called.append(list(sys.path)))
    read = pickle.loads(pickle.dumps(data))
    assert ({"name": "one", "requests_smithy_retry": None}, [before]) == (read, called)
    monkeypatch.setitem(sys.modules, "requests_smithy_retry.features.everywhere.run", None)
    pickle.loads(pickle.dumps(data))
    assert (1, before) == (len(called), sys.path)


def test_a_policy_that_cannot_be_had_ends_the_program(monkeypatch, own_process, capsys):
    """An error that only making the adapter reveals is printed in one line, too, with the same exit status."""
    monkeypatch.setenv("SMITHY_RETRY_QUOTA", "redis://cache?max_connections=many")
    assert run_module._is_good_policy()
    run_module._install(requests)
    with pytest.raises(SystemExit, match="2"):
        requests.Session()
    assert "requests-smithy-retry: quota='redis://cache:6379'" in capsys.readouterr().err


def test_a_module_of_the_programs_own_may_be_called_requests(folder):
    """A module named ``requests`` without ``Session`` is imported as it is."""
    (folder / "requests.py").write_text("here = True")
    (folder / "mine.py").write_text("import requests; print(requests.here)")
    assert "True\n" == python(folder, "-m", "requests_smithy_retry", "run", "mine.py").stdout


def test_only_the_requests_that_has_sessions_gets_the_adapter(own_process):
    """Another module named ``requests``, without sessions, does not get the adapter."""
    run_module._install(types.ModuleType("requests"))
    assert type(requests.Session().get_adapter(URL)) is requests.adapters.HTTPAdapter
    run_module._install(requests)
    assert type(requests.Session().get_adapter(URL)) is RetryAdapter


@pytest.mark.once
@pytest.mark.parametrize("first", ["adapter", "observing.history", "policy", "testing"])
def test_a_program_may_import_us_first(first, folder):
    """A program may import our modules first; its sessions have retries all the same."""
    (folder / "first.py").write_text(
        f"import requests_smithy_retry.{first} as first, requests, sys\n"
        "print(first.__name__, type(requests.Session().get_adapter('https://')).__name__)"
    )
    done = python(folder, "-m", "requests_smithy_retry", "run", "first.py")
    assert f"requests_smithy_retry.{first} RetryAdapter\n" == done.stdout
    assert f"{SAID}1 of 1 adapter had retries\n" == done.stderr


@pytest.mark.parametrize("program", ["package", "archive.pyz"])
def test_the_path_is_that_of_python(program, folder):
    """A folder and an archive get Python's own path, without the current folder in front."""
    source = folder / "path.py"
    source.write_text(
        "from sys import argv, path; print(path[0], path.count(path[0]), len(path), argv[1:], __file__, __package__)"
    )
    (folder / "package" / "__main__.py").write_text(source.read_text())
    zipapp.create_archive(folder / "package", folder / "archive.pyz")
    plain, ours = python(folder, program, "a"), python(folder, "-m", "requests_smithy_retry", "run", program, "a")
    same = os.path.basename if sys.version_info < (3, 11) else str  # there python has the path as it was given
    assert [same(word) for word in plain.stdout.split()] == [same(word) for word in ours.stdout.split()] != []


IMPORTS_NOTHING = """\
import sys
print(*sorted(name for name in sys.modules if name.startswith("requests_smithy_retry") or name in %r))
"""
SLOW = ["contextlib", "dataclasses", "functools", "inspect", "logging", "pkgutil", "re", "runpy", "threading", "typing"]


def test_a_program_without_requests_pays_next_to_nothing(folder):
    """Three small files of ours are loaded, and no module of the standard library that takes long."""
    (folder / "names.py").write_text(IMPORTS_NOTHING % SLOW)
    (folder / "start.py").write_text(
        "import sys; sys.argv[:] = ['x', 'run', 'names.py']\nfrom requests_smithy_retry.cli import main\nmain()"
    )
    names = ("cli", "features", "features.everywhere", "features.everywhere.run", "version")
    ours = ["requests_smithy_retry", *(f"requests_smithy_retry.{name}" for name in names)]
    plain, run = (python(folder, "-S", name).stdout.split() for name in ("names.py", "start.py"))
    assert sorted([*plain, *ours]) == run


def test_a_folder_without_a_main_is_told_as_python_tells_it(folder):
    """A folder without ``__main__`` leads to Python's own message and exit status."""
    (folder / "empty").mkdir()
    plain, ours = python(folder, "empty"), python(folder, "-m", "requests_smithy_retry", "run", "empty")
    assert (1, plain.returncode) == (ours.returncode, 1)
    assert "can't find '__main__' module in" in plain.stderr
    assert "can't find '__main__' module in" in ours.stderr
