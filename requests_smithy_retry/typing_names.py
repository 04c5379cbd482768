"""Names of annotations that ``typing`` may lack, for ``typing.get_type_hints`` at run time.

A type checker reads ``typing_extensions``, which need not be installed.
"""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):  # pragma: no cover - one of the two, by Python
    from typing import Self, Unpack
else:  # pragma: no cover
    Self = Any

    class Unpack:
        """Before Python 3.11, ``**options: Unpack[RetryOptions]`` reads as ``**options: RetryOptions``."""

        def __class_getitem__(cls, item: Any) -> Any:
            return item


__all__ = ["Self", "Unpack"]
