"""Running a program that is not changed (contract 10.5): ``python -m requests_smithy_retry run [-m] program args...``.

It behaves as ``python program args...`` does: ``sys.argv``, ``sys.path[0]``, ``__main__``, the exit status, tracebacks
without a line of ours, and signals. The standard library does the running; no extra is needed.
"""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
import types
from collections.abc import Sequence
from types import TracebackType

from .errors import RetryConfigError
from .install import install

USAGE = """\
usage: python -m requests_smithy_retry run program [argument ...]
       python -m requests_smithy_retry run -m module [argument ...]

Runs a Python program, with retries in every requests session that it makes. The policy comes from the
environment: SMITHY_RETRY_MAX_ATTEMPTS=5 and so on.
"""

KEPT: list[types.ModuleType] = []
"""Our own ``__main__``, which is still running while the program has that name."""


def run(arguments: Sequence[str]) -> int:
    """Install the adapter and run a program.

    :param arguments: ``program args...`` or ``-m module args...``.
    :returns: 0 when the program has ended, 2 for bad usage or a bad policy.
    :raises BaseException: what the program raises, ``SystemExit`` included.
    """
    is_module = arguments[:1] == ["-m"]
    rest = list(arguments[1:] if is_module else arguments)
    if not rest or rest[0] in ("-h", "--help") or (not is_module and rest[0].startswith("-")):
        asked = bool(rest) and rest[0] in ("-h", "--help")
        (sys.stdout if asked else sys.stderr).write(USAGE)
        return 0 if asked else 2
    try:
        install()
    except RetryConfigError as refusal:
        sys.stderr.write(f"requests-smithy-retry: {refusal}\n")
        return 2
    program = rest[0]
    sys.argv[:] = rest
    try:
        if is_module:
            _first_on_path(os.getcwd())
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            if not os.path.exists(program):
                sys.stderr.write(f"{sys.executable}: can't open file {os.path.abspath(program)!r}: no such file\n")
                return 2
            if os.path.isdir(program) or not _is_source(program):
                runpy.run_path(program, run_name="__main__")
            else:
                _first_on_path(os.path.dirname(os.path.realpath(program)))
                _run_source(program)
    except SystemExit:
        raise
    except BaseException:
        _show_without_our_frames()
        raise
    return 0


def _is_source(program: str) -> bool:
    """Whether it is text, not compiled code or a zip file."""
    with open(program, "rb") as file:
        return b"\0" not in file.read(1024)


def _run_source(program: str) -> None:
    """Run a file as ``__main__`` and leave it there, for what the program does while the interpreter ends."""
    path = os.path.abspath(program)
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None)
    KEPT.append(sys.modules["__main__"])
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _first_on_path(folder: str) -> None:
    """Do as ``python`` does; it has put the current folder there for ``-m requests_smithy_retry``."""
    if not _has_safe_path():
        sys.path[0] = folder


def _has_safe_path() -> bool:
    """Whether python runs with -P, which there is from 3.11 on."""
    return getattr(sys.flags, "safe_path", False)


def _show_without_our_frames() -> None:
    """Have the traceback of what is on its way to the top begin in the program, whoever prints it."""
    hook = sys.excepthook

    def shorter(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        own = _beyond_ours(trace)
        error.__traceback__ = own
        hook(kind, error, own)

    sys.excepthook = shorter


def _beyond_ours(trace: TracebackType | None) -> TracebackType | None:
    # Whatever started us, a console script say, stands above.
    begin = trace
    while begin is not None and begin.tb_frame.f_code.co_filename != __file__:
        begin = begin.tb_next
    trace = begin or trace
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_ours(filename: str) -> bool:
    here = os.path.dirname(__file__)
    return filename in (os.path.join(here, "__main__.py"), __file__, "<frozen runpy>", runpy.__file__)
