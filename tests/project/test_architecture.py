"""The layout of the package: imports run one way, one place sends and waits, one place knows the time."""

from __future__ import annotations

import ast
import graphlib
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from radon.complexity import cc_visit

import requests_smithy_retry

pytestmark = pytest.mark.once

PACKAGE = Path(requests_smithy_retry.__file__).parent
KIT = ("testing/", "cli", "__main__")
"""Modules that ship for tests and people, outside the layer that decides: they may read the clock and open sockets."""
SENDS = {
    "adapter.py": {"super(self._above, self).send", "self.send"},
    "core/loop.py": {"call.plan.send"},
    "features/everywhere/around.py": {"super().send", "self.theirs.send"},
}
"""The one loop that sends, and the adapters that hand its attempts on, outside ``wire/``, which hands bytes to a
connection.
"""
WAITS = {
    "clock.py": {"time.sleep", "clock.sleep", "condition.wait", "wait_on"},
    "core/exchange.py": {"mutex.acquire"},  # the lock of a pool of urllib3
    "core/waiting.py": {
        "self._clock.sleep",
        "wait_in",
        "wait_on",
    },  # a call's clock, by which all below waits
    "core/loop.py": {"call.clock.sleep"},  # as a token says
    "core/attempt.py": {"self._call.clock.wait_in", "wait_in"},  # what a strategy is shown
    "core/retry_budget.py": {"failed.wait_in"},  # in the line
    "features/rate_limits/__init__.py": {"call.clock.sleep", "call.clock.wait_in"},
    "features/addresses/resolving.py": {"event.wait"},  # for the resolver's thread, as a socket does
    "features/redis.py": {"ask.is_over.wait", "self._changed.wait"},  # for its own thread, and that for questions
    "smithy/buckets.py": {"failed.wait_in", "wait_in"},  # for tokens; the latter in a bucket that is asked by hand
    "policy.py": {"clock.sleep"},  # around a block of code that is no HTTP
    "smithy/rate_limiter.py": {"clock.sleep", "wait_in"},  # by the clock that it is given
}
"""The places that wait, outside ``wire/``, where sockets do."""
WAITING = {"sleep", "wait", "wait_for", "wait_on", "wait_in"}

LAYERS = [
    {"__init__", "checks", "urls", "errors", "forksafe", "interruptions", "typing_names"},
    {"core/wait_queue", "core/quota", "core/retry_budget", "core/server_hints", "clock"},
    {"wire"},
    {"classifiers", "core/backoff"},
    {"config"},
    {"observing"},
    {"core", "classifiers/defaults"},
    {"features", "smithy"},
    {"adapter"},
    {"features/everywhere", "policy", "otel", "prometheus", "events", "quotas"},
    {"testing", "cli", "__main__"},
]
"""From values to effects, every room and every module of the top level; what is named by itself is not in its room's
layer. A module imports from its own layer or from earlier ones."""

TIES = {
    ("config/retry_config", "config/report"): "a config's own methods explain it and tell its worst case",
    ("config/retry_config", "config/sources"): "a config's own method reads the environment",
    ("wire/pools", "observing/log"): "a pool says once what it learnt from a connection that was dead",
    ("config/parsers", "features/deadline_header"): "the value of its option is its own",
    ("config/parsers", "features/rate_limits/__init__"): "the value of its option is its own",
    ("config/parsers", "features/redis"): "the value of its option is its own",
    ("config/parsers", "features/validate"): "the value of its option is its own",
    ("config/sources", "smithy/aws"): "a source of its own, that few ask for",
    ("classifiers/defaults", "features/table"): "the table makes what a config asks for",
    ("core/scope", "features/table"): "the table makes what a config asks for",
    ("core/strategy", "features/table"): "the table makes what a config asks for",
}
"""The imports, most of them late, that tie modules into a circle or run against the layers, each with its reason."""

PURE = (
    *("core/rules", "core/policy", "core/wait_queue", "core/quota", "core/backoff"),
    *("core/server_hints", "classifiers/fold", "classifiers/resend"),
)
"""The rules by which a strategy decides: functions of values, which are told the time."""
VALUES = {("core/wait_queue", "clock"): {"Wait"}}
"""What a rule may import from a file with effects: a value."""
EFFECTS = {"time", "threading", "socket", "ssl", "http", "requests", "urllib3"}


MOST_COMPLEX = 12


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def unit_of(path: Path) -> str:
    """A module's name, or that of the sub-package it is in."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def is_kit(path: Path) -> bool:
    return name_of(path).startswith(KIT)


def run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that is executed: not what stands under ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from run_time(other)
            continue
        yield node
        yield from run_time(node)


def roots(path: Path) -> set[str]:
    """What a module imports at run time from outside of the package."""
    found: set[str] = set()
    for node in run_time(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    return found


def breaches(rule: Callable[[Path], set[str]], *, in_kit: bool = True) -> dict[str, set[str]]:
    """Return what breaks a rule, by module."""
    found = {name_of(path): rule(path) for path in modules() if in_kit or not is_kit(path)}
    return {name: names for name, names in found.items() if names}


def test_only_the_clock_knows_the_time():
    """``time`` is imported in clock.py alone, ``random`` for jitter, ``datetime`` to read the dates of servers."""
    found = breaches(lambda path: roots(path) & {"time", "datetime", "random", "sched"}, in_kit=False)
    dates = "features/rate_limits/announced.py"
    assert {"clock.py": {"time"}, "core/backoff.py": {"random"}, dates: {"datetime"}} == found


def calls(path: Path) -> Iterator[tuple[str, str, ast.Call]]:
    """Each call outside ``wire/``: what is called, as it is written, its last name, and the call."""
    for node in ast.walk(ast.parse(path.read_text())) if unit_of(path) != "wire" else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            yield ast.unparse(node.func), name, node


def test_only_the_loop_sends():
    """Nothing else does: a bare ``send`` is what a feature was given, which stands around it."""
    found = breaches(lambda path: {text for text, name, _ in calls(path) if name == "send"} - {"send"}, in_kit=False)
    assert SENDS == found


def waits(path: Path) -> set[str]:
    return {
        text
        for text, name, node in calls(path)
        if name in WAITING or (name == "acquire" and any(word.arg == "timeout" for word in node.keywords))
    }


def test_only_a_few_places_wait():
    """Every call that may take time is in one of the places that are named here."""
    assert WAITS == breaches(waits, in_kit=False)


def test_the_rules_have_no_effects():
    """They import no clock, no lock, no socket and no ``requests``, and neither the wire nor what sends and waits."""
    acting = (
        "clock",
        "wire/",
        "core/loop",
        "core/call",
        "core/waiting",
        "core/exchange",
        "core/strategy",
        "core/retry_budget",
    )
    found = {
        name: roots(PACKAGE / f"{name}.py") & EFFECTS
        | {
            other
            for other in imported(PACKAGE / f"{name}.py")
            if other.startswith(acting) and not is_value(name, other)
        }
        for name in PURE
    }
    assert {name: set() for name in PURE} == found


def is_value(name: str, other: str) -> bool:
    """Return True if a rule imports only values from a file with effects."""
    body = ast.parse((PACKAGE / f"{name}.py").read_text()).body
    froms = [node for node in body if isinstance(node, ast.ImportFrom) and node.module == other.rpartition("/")[2]]
    names = {alias.name for node in froms for alias in node.names}
    return names != set() and names <= VALUES.get((name, other), set())


def test_the_loop_asks_no_strategy_for_its_class():
    """``run`` treats all alike: ``isinstance`` of a strategy stands nowhere in the files that send (contract 1)."""
    for name in ("core/loop.py", "core/call.py"):
        assert "StandardRetryStrategy" not in (PACKAGE / name).read_text(), name


def test_the_strategy_layer_knows_no_http_library():
    """Strategies, verdicts, tokens, buckets, the limiter and the config are imported without any (contract 1)."""
    script = (
        "import sys\n"
        "from requests_smithy_retry import StandardRetryStrategy, AdaptiveRetryStrategy, SimpleRetryStrategy\n"
        "from requests_smithy_retry import ClientRateLimiter, RetryConfig, RetryAction, classify, retry_options\n"
        "from requests_smithy_retry import RetryClassifierPriority, ExponentialRetryBackoffStrategy, TokenBucket\n"
        "print({'requests', 'urllib3', 'http', 'socket', 'ssl'} & {name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "set()" == done.stdout.strip()


def layer_of(name: str) -> int:
    """The layer of a module, or of the room that it is in."""
    parts = name.split("/")
    names = {"/".join(parts[: end + 1]) for end in range(len(parts))}
    return max((len(unit), number) for number, layer in enumerate(LAYERS) for unit in layer & names)[1]


def imports_upward(path: Path) -> set[str]:
    own = name_of(path).removesuffix(".py")
    others = {other for other in imported(path) if (own, other) not in TIES}
    return {other for other in others if layer_of(other) > layer_of(own)}


def test_imports_run_one_way():
    """A module imports from its own layer or from those before it, in its functions, too, but for the ties."""
    assert {} == breaches(imports_upward, in_kit=False)


UNITS = {unit_of(path) for path in modules()}


def test_the_table_names_every_room():
    """The table of layers names every room and every module of the top level, each once."""
    named = [unit for layer in LAYERS for unit in layer]
    assert sorted(UNITS) == sorted(name for name in named if "/" not in name)
    assert [] == [name for name in named if "/" in name and not (is_own(name) or is_own(f"{name}/__init__"))]


def imported(path: Path) -> set[str]:
    """The modules of the package that one imports at run time, in functions, too."""
    own = name_of(path).removesuffix(".py")
    package = own.rpartition("/")[0]
    found = set()
    for node in run_time(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package.split("/")[: len(package.split("/")) - node.level + 1] if package else []
            base = "/".join([*above, *(node.module or "").split(".")]).strip("/")
            for name in (f"{base}/{alias.name}".strip("/") for alias in node.names):
                target = next(filter(is_own, (name, base, f"{base}/__init__")), None)
                found |= {target} - {None, own, "__init__"}
    return found


def is_own(name: str) -> bool:
    return (PACKAGE / f"{name}.py").is_file()


def test_nothing_is_tied_into_a_circle_without_a_reason() -> None:
    """With late imports counted, too, modules form no circle but by the ties that have a reason."""
    graph = {name_of(path).removesuffix(".py"): imported(path) for path in modules()}
    for importer, other in TIES:
        graph[importer].remove(other)
    assert len(graph) == len(list(graphlib.TopologicalSorter(graph).static_order()))
    for tie in TIES:
        if layer_of(tie[1]) > layer_of(tie[0]):
            continue
        with pytest.raises(graphlib.CycleError):
            list(graphlib.TopologicalSorter({**graph, tie[0]: {*graph[tie[0]], tie[1]}}).static_order())


PUBLIC = ("", ".testing", ".policy", ".smithy", ".features.redis", ".prometheus", ".otel")


def public_items() -> Iterator[tuple[str, object]]:
    """Each name of the public modules, and each public method and property of their classes."""
    for module in (importlib.import_module("requests_smithy_retry" + suffix) for suffix in PUBLIC):
        own = [name for name, item in vars(module).items() if getattr(item, "__module__", None) == module.__name__]
        for name in getattr(module, "__all__", own):
            item = getattr(module, name)
            if name.startswith("_") or not (inspect.isclass(item) or inspect.isfunction(item)):
                continue
            yield f"{module.__name__}.{name}", item
            for member, value in vars(item).items() if inspect.isclass(item) else ():
                if not member.startswith("_") and (
                    inspect.isfunction(value) or isinstance(value, property | classmethod)
                ):
                    yield f"{module.__name__}.{name}.{member}", getattr(item, member)


def test_a_public_name_is_documented():
    """A public name has a docstring of its own or inherits that of the name it overrides."""
    assert [] == [name for name, item in public_items() if not inspect.getdoc(item)]


def test_importing_reads_no_environment_and_no_file_is_of_a_machine():
    """``os.environ`` is looked at by functions alone; no home directory or temporary path is named."""
    for path in modules():
        text = path.read_text()
        assert not re.search(r"/(home|root|tmp)/", text), name_of(path)
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.If):
                assert "os.environ" not in ast.unparse(node), name_of(path)


def test_no_function_is_too_complex() -> None:
    """Radon, which counts each ``and`` and ``or``, sees no function of the package above 12."""
    blocks = [(block, path) for path in modules() for block in cc_visit(path.read_text(encoding="utf-8"))]
    assert [] == [f"{name_of(path)}: {block.name}" for block, path in blocks if block.complexity > MOST_COMPLEX]
