"""The signature that a constructor shows (contract 1): with each option by name, in place of ``**options``.

A mix-in that looks which keywords the constructor behind it takes, and drops the others, finds the options there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .config import RetryConfig
from .options import OPTIONS


def with_options(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function whose last parameter is ``**options``.

    :param function: the function; it goes on taking the options as keywords.
    """
    shown = inspect.signature(function)
    *own, rest = shown.parameters.values()
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=RetryConfig.__annotations__[name],
        )
        for name, option in OPTIONS.items()
    ]
    return shown.replace(parameters=[*own, *options, rest])
