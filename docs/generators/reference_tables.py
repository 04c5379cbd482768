"""Tables of the reference that are read off the code: names, environment, stop reasons, exceptions."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests_smithy_retry
from requests_smithy_retry import StopReason
from requests_smithy_retry import errors as stop_reason
from requests_smithy_retry.config.options import Option
from requests_smithy_retry.config.retry_config import OPTIONS
from requests_smithy_retry.config.sources import VARIABLES, parse_text
from requests_smithy_retry.core.caller_errors import EXHAUSTED
from requests_smithy_retry.observing.log import QUIET_ENDINGS
from requests_smithy_retry.smithy.aws import KEYS
from requests_smithy_retry.smithy.aws import VARIABLES as AWS_VARIABLES

API = Path(__file__).parents[1] / "reference" / "api"

EXAMPLES = {
    "mode": "adaptive",
    "max_attempts": "5",
    "retry_spec": "2.0",
    "initial_backoff": "100ms",
    "throttling_backoff": "2",
    "max_backoff": "10s",
    "jitter": "none",
    "quota": "redis://cache:6379/0",
    "patience": "10s",
    "max_retry_after": "5min",
    "pacing": "off",
    "operation_timeout": "30",
    "operation_attempt_timeout": "10",
    "timeout": "3.05, 27",
    "allowed_methods": "GET, HEAD",
    "retry_status_codes": "429, 503",
    "raise_on_status": "true",
    "enabled": "false",
    "telemetry": "log, otel",
    "aws_config": "my-profile",
}
"""Examples by option, where one says more than :func:`example_of` can guess."""

INNER = {
    "core.replay.BodyChanged": "the caller gets requests' UnrewindableBodyError",
    "checks.Refused": "the caller gets RetryConfigError",
    "wire.resolving.Late": "the caller gets ConnectTimeout",
    "wire.resolving.Stuck": "the caller gets ConnectTimeout",
    "smithy.policy.DirectedError": "told to a strategy, never raised",
}
"""Classes that never leave the package, with what comes of them."""


def cell(text: str) -> str:
    """Text that keeps within one cell."""
    return text.replace("|", "\\|")


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def from_docstring(text: str) -> str:
    """A docstring's reST as one line of Markdown."""
    text = re.sub(r":[a-z]+:`~?([^`]+)`", lambda match: f"`{match[1].removeprefix('requests_smithy_retry.')}`", text)
    return cell(" ".join(text.replace("``", "`").split()))


def summary(item: Any) -> str:
    """The first paragraph of a docstring."""
    return from_docstring((inspect.getdoc(item) or "").partition("\n\n")[0])


def names() -> str:
    """Every name of the package and of the testing kit, by page, in the order of the page."""
    parts = []
    index = (API.parent / "api.md").read_text(encoding="utf-8")
    for slug in [*re.findall(r"^api/(\w+)$", index, re.MULTILINE), "../exceptions"]:
        text = (API / f"{slug}.md").read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        rows = []
        for kind, target in re.findall(r"^\.\. auto(class|exception|function|data):: ([\w.]+)", text, re.MULTILINE):
            module, _, name = target.rpartition(".")
            if module not in ("requests_smithy_retry", "requests_smithy_retry.testing"):
                continue
            said = "" if kind == "data" else summary(getattr(importlib.import_module(module), name))
            role = "func" if kind == "function" else "obj"
            rows.append((f"{{py:{role}}}`{name} <{target}>`", said or "a constant"))
        parts.append(f"### {title}\n\n{table(('name', 'what it is'), rows)}")
    return "\n\n".join(parts)


def default_cell(option: Option) -> str:
    """An option's default."""
    if option.by_spec:
        return "by `retry_spec`"
    value = option.default
    if isinstance(value, frozenset):
        return ", ".join(f"`{item}`" for item in sorted(value))
    if value == ():
        return "none"
    return f"`{value!r}`" if isinstance(value, (bool, int, float, str, type(None))) else "the published numbers"


def example_of(name: str) -> str:
    """Return an example of a variable's value. The code reads it before it is shown."""
    item = OPTIONS[name]
    by_kind = {bool: "no" if item.default is True else "yes"}.get(type(item.default), "10s")
    example = EXAMPLES.get(name, by_kind)
    parse_text(name, example, "this page")
    return example


def environment() -> str:
    """Each variable of :data:`VARIABLES`."""
    rows = []
    for variable, name in VARIABLES.items():
        allowed = cell(OPTIONS[name].allowed.rstrip(","))
        rows.append((f"`{variable}`<br>`{name}`", allowed, default_cell(OPTIONS[name]), f"`{example_of(name)}`"))
    return table(("variable, option", "form", "default", "example"), rows)


def aws() -> str:
    """Tabulate the settings that ``aws_config`` reads."""
    rows = []
    for variable, option in AWS_VARIABLES.items():
        keys = [f"`{key}`" for key, own in KEYS.items() if own == option]
        rows.append((f"`{variable}`", ", ".join(keys) or "-", f"`{option}`"))
    return table(("variable", "key of the profile", "option"), rows)


def attribute_docs(module: Any, class_name: str) -> dict[str, str]:
    """The texts under the assignments in a class body."""
    tree = ast.parse(inspect.getsource(module))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name).body
    found = {}
    for node, following in itertools.pairwise(body):
        if isinstance(node, ast.Assign) and isinstance(following, ast.Expr) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = ast.literal_eval(following.value)
    return found


def stop_reasons() -> str:
    """Each stop reason: phrase, meaning, what the caller gets, and what it counts as."""
    docs = attribute_docs(stop_reason, "StopReason")
    rows = []
    for reason in StopReason:
        meaning, found, gets = from_docstring(docs[reason.name]).partition(" The caller gets ")
        if not found:
            raise ValueError(f"{reason.name} does not say what the caller gets")
        counts = "no" if reason in QUIET_ENDINGS else "yes, and raises" if reason in EXHAUSTED else "yes"
        rows.append((f"`{reason.name}`", f"*{reason.value}*: {meaning}", gets.removesuffix("."), counts))
    return table(("name", "phrase and meaning", "the caller gets", "gives up"), rows)


def own_exceptions() -> dict[str, type[BaseException]]:
    """Every exception class of the package but those of the command line and the testing kit, by its full name."""
    found = {}
    for info in pkgutil.walk_packages(requests_smithy_retry.__path__, "requests_smithy_retry."):
        if re.search(r"\.(__main__|cli|testing)\b", info.name):
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # an extra that is not installed
            continue
        for name, cls in vars(module).items():
            own = inspect.isclass(cls) and cls.__module__ == info.name and not name.startswith("_")
            if own and issubclass(cls, BaseException):
                public = name in requests_smithy_retry.__all__
                found[f"{'requests_smithy_retry' if public else info.name}.{name}"] = cls
    return found


def exceptions() -> str:
    """Each class: its bases, what it says of itself, what it carries."""
    rows = []
    for full, cls in sorted(own_exceptions().items(), key=lambda item: item[1].__name__):
        if full.removeprefix("requests_smithy_retry.") not in INNER:
            bases = ", ".join(f"`{base.__name__}`" for base in cls.__bases__)
            has = re.findall(r"^        self\.(\w+)(?:: [^=]+)? =", inspect.getsource(cls), re.MULTILINE)
            rows.append((f"`{cls.__name__}`", bases, summary(cls), ", ".join(f"`.{name}`" for name in has) or "-"))
    return table(("class", "bases", "when", "carries"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "aws": aws,
    "environment": environment,
    "exceptions": exceptions,
    "names": names,
    "stop-reasons": stop_reasons,
}
"""By name of the block."""
