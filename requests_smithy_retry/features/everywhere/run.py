"""Running an unchanged program (contract 10.5): ``python -m requests_smithy_retry run [-m] program args...``.

It behaves as ``python program args...`` does: ``sys.argv``, ``sys.path[0]``, ``__main__``, the exit status, tracebacks
without a line of ours, and signals. When it ends, one line on stderr tells how many of its adapters had retries.
"""

from __future__ import annotations

import atexit
import builtins
import io
import os
import sys
from types import ModuleType

from .children import PROCESSES

TYPE_CHECKING = False  # as in typing: a program that does not use requests is not slowed down by imports
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import TracebackType
    from typing import Any, TypeAlias

    from ...errors import RetryConfigError

    Then: TypeAlias = Callable[[ModuleType], None]

USAGE = """\
usage: python -m requests_smithy_retry run [option] program [argument ...]
       python -m requests_smithy_retry run [option] -m module [argument ...]

Run a Python program, with retries in every requests session that it makes. The policy comes from the environment:
SMITHY_RETRY_MAX_ATTEMPTS=5 and so on. It also holds in processes that the program starts with multiprocessing.

option:
  --mounted=plain  Adapters that the program or its libraries mount get retries if they retry nothing (the default).
  --mounted=all    The retries of other adapters are taken over, too.
  --mounted=replace
                   Every adapter gets the policy, and its own Retry is ignored.
  --mounted=none   Adapters that are mounted stay as they are.
  --list           A dry run: the program runs as it is, without retries. At the end each of its adapters is listed,
                   with the policy that it would have, or why it would be left alone.

At its end one line on stderr tells how many adapters had retries; at once, if one is left alone and none has any.
"""

NO_SESSION = "this process made no session of requests, so nothing had retries"

SPAWNING = ("multiprocessing.spawn", "loky.backend.spawn", "joblib.externals.loky.backend.spawn")

BEGIN = """\
import sys
found, sys.path[:] = sys.path[:], path
try:
    from requests_smithy_retry.features.everywhere.run import install_when_needed
except ImportError:
    pass
else:
    install_when_needed(folder=folder)
finally:
    sys.path[:] = found
"""

KEPT: list[ModuleType] = []
"""Our own ``__main__`` module, kept alive while the program has that name."""


def run(arguments: Sequence[str]) -> int:
    """Install the adapter and run a program; return 0 after its end, 2 for bad usage or a bad policy."""
    mounted, is_dry, arguments = _options(arguments)
    is_module = arguments[:1] == ["-m"]
    rest = list(arguments[1:] if is_module else arguments)
    program = rest[0] if rest else ""
    if program in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return 0
    if not program or (not is_module and program.startswith("-")):
        sys.stderr.write(USAGE)
        return 2
    if not _is_good_policy(mounted) or not (is_module or _is_there(program)):
        return 2
    PROCESSES.start_counting()
    install_when_needed(is_dry=is_dry)
    sys.argv[:] = rest
    atexit.register(_report, os.getpid(), is_dry)  # before those of the program, and so called after them
    return _carry_out(program, is_module=is_module)


def install_when_needed(*, is_dry: bool = False, folder: str = "") -> None:
    """Install the adapter once the program, which may patch for gevent first, has imported requests.

    :param folder: in a process that the program started: where it writes its report.
    """
    if folder:
        PROCESSES.join(folder)
    after_import("requests", lambda requests: _install(requests, is_dry=is_dry))
    for name in () if is_dry else SPAWNING:
        after_import(name, _cover_children)


def after_import(name: str, then: Then) -> None:
    """Call a function with a module: now if it has been imported, else at its first import, which it may break."""
    if name in sys.modules:
        then(sys.modules[name])
        return
    for finder in sys.meta_path:
        if isinstance(finder, _Finder) and finder.name == name:
            finder.calls.append(then)
            return
    sys.meta_path.insert(0, _Finder(name, then))


class _Finder:
    """Finds one module by the other finders, and acts once it is executed; then leaves ``sys.meta_path``."""

    def __init__(self, name: str, then: Then) -> None:
        self.name = name
        self.calls: list[Then] = [then]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        others = [
            finder.find_spec
            for finder in sys.meta_path
            if not isinstance(finder, _Finder) and hasattr(finder, "find_spec")
        ]
        spec = next(filter(None, (find(name, path, target) for find in others)), None)
        loader: Any = None if spec is None else spec.loader
        # Patched, not replaced: programs ask loaders for much more than this. A loader may serve many modules.
        if hasattr(loader, "exec_module") and "exec_module" not in getattr(loader, "__dict__", {"exec_module": None}):
            self._wrap(loader)
        return spec

    def _wrap(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if module.__name__ == self.name:
                vars(loader).pop("exec_module", None)
                if self in sys.meta_path:  # the program may have replaced the list
                    sys.meta_path.remove(self)
                for then in self.calls:
                    then(module)

        loader.exec_module = exec_module


def _install(requests: Any, *, is_dry: bool = False) -> None:
    # A module of this name may be the program's own.
    if hasattr(requests, "sessions"):
        from .installation import RunOptions, install_later

        install_later(RunOptions(_refuse, _tell, is_dry))


def _refuse(refusal: RetryConfigError) -> None:
    _tell(refusal)
    sys.exit(2)


def _report(process: int, is_dry: bool) -> None:
    """Print what became of the adapters of the program; a forked process only reports to it."""
    mounting = sys.modules.get("requests_smithy_retry.features.everywhere.installation")
    installation = None if mounting is None else mounting.current()
    if os.getpid() != process:
        if installation is not None:
            installation.report_to_parent()
        return
    others: Any = list(PROCESSES.read_reports())
    if others:
        from .counts import ProcessReport, report

        others = [ProcessReport(*each) for each in others]
    if installation is not None:
        lines = installation.report(each=is_dry, others=others)
    else:
        lines = report(others, "would have" if is_dry else "had", each=is_dry) if others else []
    for line in [*lines, _risk(installation)] if lines else [NO_SESSION]:
        if line:
            _tell(line)


def _risk(installation: Any) -> str:
    """Return the line for methods that the policy in force may apply twice; an empty one if there are none."""
    from ...config.retry_config import RetryConfig
    from .decisions import resend_risk

    return resend_risk(RetryConfig.from_environment() if installation is None else installation.config)


def _options(arguments: Sequence[str]) -> tuple[str | None, bool, Sequence[str]]:
    """Return the value of ``--mounted``, or None; whether there is ``--list``; and the arguments that follow."""
    mounted, is_dry, rest = None, False, list(arguments)
    while rest and rest[0].partition("=")[0] in ("--mounted", "--list"):
        name, equals, value = rest.pop(0).partition("=")
        if name == "--list":
            is_dry = True
        else:
            mounted = value if equals else "".join(rest[:1])
            rest = rest if equals else rest[1:]
    return mounted, is_dry, rest


def _is_good_policy(mounted: str | None = None) -> bool:
    """Check the environment before the program starts; ``mounted`` replaces a part of it, for child processes, too."""
    if mounted is None and not any(name.startswith("SMITHY_RETRY_") for name in os.environ):
        return True

    from ...config.retry_config import RetryConfig
    from ...config.sources import MOUNTED, mounted_of
    from ...errors import RetryConfigError

    try:
        if mounted is not None:
            os.environ[MOUNTED] = mounted_of(mounted, {}, "--mounted")
        if RetryConfig.from_environment().enabled:
            mounted_of(None, os.environ)
    except RetryConfigError as refusal:
        _tell(refusal)
        return False
    return True


def _tell(words: object) -> None:
    stderr: Any = sys.stderr
    try:
        stderr.write(f"requests-smithy-retry: {words}\n")
    except (AttributeError, OSError, ValueError):  # the program has none, or has closed it
        pass


def _cover_children(spawning: Any) -> None:
    """Make each process that is started without fork begin with :func:`install_when_needed`."""
    import functools

    plain = spawning.get_preparation_data

    @functools.wraps(plain)
    def get_preparation_data(*args: Any, **kwargs: Any) -> Any:
        data = plain(*args, **kwargs)
        data["requests_smithy_retry"] = _Begin(list(sys.path), PROCESSES.make_folder())
        return data

    spawning.get_preparation_data = get_preparation_data


class _Begin:
    """Runs :data:`BEGIN` in a child when it is unpickled, with the parent's ``sys.path``, which it gets later."""

    def __init__(self, path: list[str], folder: str) -> None:
        self._path = path
        self._folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (BEGIN, {"path": self._path, "folder": self._folder})


def _carry_out(program: str, *, is_module: bool) -> int:
    try:
        if not is_module:
            return _run_file(program)
        import runpy

        _first_on_path(os.getcwd())
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return 0
    except SystemExit:
        raise
    except BaseException:
        _show_without_our_frames()
        raise


def _is_there(program: str) -> bool:
    """Return True if there is such a file or folder; else print what python prints."""
    if os.path.exists(program):
        return True
    sys.stderr.write(f"{sys.executable}: can't open file {os.path.abspath(program)!r}: no such file\n")
    return False


def _run_file(program: str) -> int:
    """Run a file, or the ``__main__`` of a folder or an archive, with the same ``sys.path`` as python."""
    path = os.path.abspath(program)
    content = b"\0"
    if not os.path.isdir(path):
        with io.open_code(path) as file:
            content = file.read()
    if b"\0" in content:  # not text
        import runpy

        # runpy adds a folder or an archive itself.
        _first_on_path(*([os.path.dirname(path)] if path.endswith(".pyc") else []))
        runpy.run_path(path, run_name="__main__")
    else:
        _first_on_path(os.path.dirname(os.path.realpath(program)))
        main = ModuleType("__main__")
        main.__dict__.update(__builtins__=builtins, __file__=path, __cached__=None)
        KEPT.append(sys.modules["__main__"])
        sys.modules["__main__"] = main  # and it stays there until the interpreter exits
        exec(compile(content, path, "exec", dont_inherit=True), main.__dict__)
    return 0


def _first_on_path(*folder: str) -> None:
    """Set ``sys.path[0]`` as ``python`` does; now it is the current folder, from ``-m requests_smithy_retry``."""
    if not getattr(sys.flags, "safe_path", False):  # python -P (3.11 and later)
        sys.path[:1] = folder


def _show_without_our_frames() -> None:
    """Make the traceback of an uncaught exception begin in the program."""
    hook = sys.excepthook

    def shorter(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        own = _beyond_ours(trace)
        error.__traceback__ = own
        hook(kind, error, own)

    sys.excepthook = shorter


def _beyond_ours(trace: TracebackType | None) -> TracebackType | None:
    # The frames above are those of our caller, such as a console script.
    begin = trace
    while begin is not None and begin.tb_frame.f_code.co_filename != __file__:
        begin = begin.tb_next
    trace = begin or trace
    import runpy

    ours = (os.path.join(os.path.dirname(__file__), "__main__.py"), __file__, "<frozen runpy>", runpy.__file__)
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace
