"""The settings of Sphinx: warnings are errors, and every name that is referred to must exist."""

from __future__ import annotations

import enum
from typing import Any

import requests_smithy_retry
from requests_smithy_retry import classifiers, events, quotas, smithy

HOMES = (requests_smithy_retry, classifiers, events, quotas, smithy)
"""The modules that names are imported from."""

project = "requests-smithy-retry"
author = "The requests-smithy-retry maintainers"
release = version = requests_smithy_retry.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_show_copyright = False
html_title = "requests-smithy-retry"
exclude_patterns = ["_build"]
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

nitpicky = True
nitpick_ignore_regex = [
    # Types of other packages in annotations. A link would need their documentation, and a build asks no network.
    (
        r"py:(class|exc)",
        r"(collections\.abc|os|ssl|socket|typing|requests|urllib3|opentelemetry|prometheus_client)\..+",
    ),
    # Names that are imported only for type checkers, so that Sphinx sees no module before the name.
    (r"py:class", r"Path|PreparedRequest|Response|Retry|CollectorRegistry|MeterProvider|TracerProvider"),
    # Type variables and aliases of unions: nothing is written about them.
    (r"py:class", r"(requests_smithy_retry\.[a-z_.]+\.)?(R|R_co|S)|Steps?"),
    # Types of values that pass through public signatures, and that callers neither make nor look into.
    (
        r"py:class",
        (
            r"(requests_smithy_retry\.[a-z0-9_.]+\.)?"
            r"(AddressMemory|Call|Feature|Hint|Opener|OperationKeywords|Payment|Peer|Predicate|Progress|RedisClient|Replayable|"
            r"Scope|_Entry)"
        ),
    ),
]


def find_public_name(app: Any, env: Any, node: Any, content: Any) -> Any:
    """A public name is found from every module's docstrings, whichever public module has it."""
    target = node.get("reftarget", "")
    home = next((module.__name__ for module in HOMES if target in module.__all__), None)
    if node.get("refdomain") != "py" or home is None:
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", f"{home}.{target}", node, content)


def without_idle_arguments(app: Any, what: str, name: str, obj: Any, *_: Any) -> tuple[str, str] | None:
    """Protocols and enumerations are not made by calling them, so no arguments are shown."""
    is_called = not (isinstance(obj, enum.EnumMeta) or getattr(obj, "_is_protocol", False))
    return None if is_called else ("", "")


def skip_bare_fields(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Skip the fields of a named tuple: its parameters describe them."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app: Any) -> None:
    """Have Sphinx ask the functions above."""
    # The options have a table of their own; and autodoc looks for each parameter in the source.
    del requests_smithy_retry.RetryAdapter.__init__.__signature__
    del requests_smithy_retry.retry_options.__signature__
    app.connect("autodoc-skip-member", skip_bare_fields)
    app.connect("autodoc-process-signature", without_idle_arguments)
    app.connect("missing-reference", find_public_name)
