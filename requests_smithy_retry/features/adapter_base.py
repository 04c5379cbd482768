"""What the adapter is built on: the driver, or what the feature that knows the ``Retry`` of urllib3 makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.driver import Driver
from .table import found

__all__ = ["AdapterBase"]

if TYPE_CHECKING:
    from .urllib3_retry import MaxRetries

    AdapterBase = MaxRetries
else:
    _module = found("urllib3_retry")
    AdapterBase = Driver if _module is None else _module.MaxRetries
