"""Tables of the reference that are read off the code: names, environment, stop reasons, exceptions."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from requests_smithy_retry import StopReason
from requests_smithy_retry import errors as stop_reason
from requests_smithy_retry.config import sources
from requests_smithy_retry.config.options import Option
from requests_smithy_retry.config.retry_config import OPTIONS
from requests_smithy_retry.config.sources import VARIABLES, parse_text
from requests_smithy_retry.core.endings import EXHAUSTED
from requests_smithy_retry.errors import QUIET_ENDINGS


def cell(text: str) -> str:
    """Text that keeps within one cell."""
    return text.replace("|", "\\|")


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    first, *others = (f"| {' | '.join(line)} |" for line in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *others])


def from_docstring(text: str) -> str:
    """A docstring's reST as one line of Markdown."""
    text = re.sub(r":[a-z]+:`~?([^`]+)`", lambda match: f"`{match[1].removeprefix('requests_smithy_retry.')}`", text)
    return cell(" ".join(text.replace("``", "`").split()))


told_by_default = frozenset(
    {
        "True or False",
        "a collection of classifiers",
        "a collection of listeners",
        "a finite number of seconds (0 or more)",
        "a finite number of seconds (0 or more) or None",
        "a finite number of seconds above 0 or None",
        "a function of a response, or None",
        "a function or None",
    }
)
"""What is allowed, of options whose default and meaning say as much."""


def default_of(option: Option) -> str:
    """An option's default, as code."""
    value = option.default
    return f"{{{', '.join(map(repr, sorted(value)))}}}" if isinstance(value, frozenset) else repr(value)


def example_of(name: str) -> str:
    """Return an example of a variable's value. The code reads it before it is shown."""
    example = sources.example_of(name, OPTIONS[name].default)
    parse_text(name, example, "this page")
    return example


def environment() -> str:
    """Each variable of :data:`VARIABLES`, with a value."""
    lines = [f"{variable}={shlex.quote(example_of(name))}" for variable, name in VARIABLES.items()]
    return "\n".join(("```sh", *lines, "```"))


def attribute_docs(module: Any, class_name: str) -> dict[str, str]:
    """The texts under the assignments in a class body."""
    tree = ast.parse(inspect.getsource(module))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name).body
    found = {}
    for node, following in itertools.pairwise(body):
        if isinstance(node, ast.Assign) and isinstance(following, ast.Expr) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = ast.literal_eval(following.value)
    return found


USUAL = ("the last response or exception", "the response or the exception", "the response")
"""What the caller gets where the page need not say so."""


def stop_reasons() -> str:
    """Each stop reason, by what it counts as: phrase, meaning, and what the caller gets if that is nothing usual."""
    docs = attribute_docs(stop_reason, "StopReason")
    by: dict[str, list[str]] = {"Gives up; with `raise_on_status`, raises": [], "Gives up": [], "Ends": []}
    raises, gives_up, ends = by.values()
    for reason in StopReason:
        text = re.sub(r" \(contract [\d.]+\)", "", from_docstring(docs[reason.name]))
        meaning, found, gets = text.partition(" The caller gets ")
        if not found:
            raise ValueError(f"{reason.name} does not say what the caller gets")
        gets = gets.removesuffix(".").removeprefix(f"{USUAL[0]}; ")
        said = "" if gets in USUAL else f" The caller gets {gets}."
        of = ends if reason in QUIET_ENDINGS else raises if reason in EXHAUSTED else gives_up
        of.append(f"`{reason.name}`\n: *{reason.value}*: {meaning}{said}")
    return "\n\n".join("\n\n".join((f"### {head}", *items)) for head, items in by.items())


BLOCKS: dict[str, Callable[[], str]] = {
    "environment": environment,
    "stop-reasons": stop_reasons,
}
"""By name of the block."""
