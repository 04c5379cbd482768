"""Writes what of the documentation is made from the code: ``python docs/generate.py``.

Some pages are made whole (:data:`PAGES`); others have a marked block (:data:`BLOCKS`) and are written by hand around
it. ``--check`` changes nothing and fails if a page is out of date.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from requests_smithy_retry.config.retry_config import OPTIONS
from requests_smithy_retry.config.retry_options import OPERATION_OPTIONS

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]  # the generators, and the tests' faults, wherever this is run from


def options_list() -> str:
    """Every option with its default; what it is for, and what is allowed unless the default shows that."""
    from generators.reference_tables import default_of, told_by_default

    items = []
    for name, option in OPTIONS.items():
        allowed = "" if option.allowed in told_by_default else f" *Allowed*: {option.allowed.rstrip(',')}."
        items.append(f"`{name}={default_of(option)}`\n: {_sentence(option.meaning)}{allowed}")
    return "\n\n".join(items)


def operation_options_list() -> str:
    """List the options that ``retry_options`` takes, those last that mean what they mean for an adapter."""
    items = [(name, item.meaning) for name, item in OPERATION_OPTIONS.items()]
    same = [name for name, meaning in items if name in OPTIONS and OPTIONS[name].meaning == meaning]
    own = [f"`{name}`\n: {_sentence(meaning)}" for name, meaning in items if name not in same]
    return "\n\n".join([*own, f"{', '.join(f'`{name}`' for name in same)}\n: As above."])


def _sentence(text: str) -> str:
    text = text.removesuffix(", s").replace(", s;", ";")  # the page says that durations are in seconds
    return f"{text[0].upper()}{text[1:]}."


def from_module(module: str, name: str) -> Callable[[], str]:
    """Return the maker of a block: a function of a generator, which is imported when it is called."""

    def make() -> str:
        blocks: dict[str, Callable[[], str]] = importlib.import_module(f"generators.{module}").BLOCKS
        return blocks[name]()

    return make


def classification() -> str:
    """The page of every outcome's verdict."""
    from generators.classification_page import build

    return build()


PAGES: dict[str, Callable[[], str]] = {"reference/classification.md": classification}
"""Whole pages. They show what is installed, so ``--check`` leaves them to their own tests."""

BLOCKS: dict[tuple[str, str], Callable[[], str]] = {
    **{
        (page, name): from_module(module, name)
        for module, page, name in (
            ("reference_tables", "reference/environment.md", "environment"),
            ("reference_tables", "reference/exceptions.md", "stop-reasons"),
            ("outward_tables", "reference/command-line.md", "commands"),
            ("outward_tables", "howto/observe-retries.md", "log-records"),
            ("outward_tables", "howto/observe-retries.md", "metrics"),
            ("measured", "howto/riding-out-an-outage.md", "weak-corners"),
            ("measured", "howto/riding-out-an-outage.md", "fan-out"),
            ("measured", "howto/web-service.md", "web-service"),
            *(
                ("measured", "explanation/benchmarks.md", name)
                for name in ("results", "overhead", "not-best", "machine")
            ),
            *(("measured", "../README.md", name) for name in ("outage-caption", "outage-success", "overhead-sentence")),
            *(("sdk_tables", "howto/sdks.md", name) for name in ("sdks-totals", "sdks")),
        )
    },
    ("reference/options.md", "options"): options_list,
    ("reference/options.md", "operation-options"): operation_options_list,
}
"""By page and name of the block."""


def with_block(page: str, name: str, content: str) -> str:
    """A page's text with the content of one block replaced.

    :raises ValueError: if the page has no such block.
    """
    begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
    head, found, rest = page.partition(begin)
    _, ended, tail = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"there is no block {name!r}")
    return f"{head}{begin}\n{content}\n\n{end}{tail}"


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` say which ones are out of date.

    :returns: 1 if a page is out of date, else 0.
    """
    logging.getLogger("requests_smithy_retry").addHandler(logging.NullHandler())
    stale = []
    if "--check" not in arguments:
        for file, page in PAGES.items():
            (DOCS / file).write_text(page(), encoding="utf-8")
    for (file, name), make in BLOCKS.items():
        path = DOCS / file
        before = path.read_text(encoding="utf-8")
        after = with_block(before, name, make())
        if before != after:
            stale.append(file)
            if "--check" not in arguments:
                path.write_text(after, encoding="utf-8")
    if stale and "--check" in arguments:
        sys.stderr.write(f"out of date, run python docs/generate.py: {', '.join(dict.fromkeys(stale))}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
