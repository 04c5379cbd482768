"""What the adapter is built on: the driver, or what the feature that knows the ``Retry`` of urllib3 makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..config.options import UNSET
from ..core.driver import Driver
from ..errors import RetryConfigError
from .table import found

__all__ = ["AdapterBase"]

if TYPE_CHECKING:
    from ..config.retry_config import RetryConfig
    from ..core.strategy import RetryStrategy
    from .urllib3_retry import MaxRetries

    AdapterBase = MaxRetries


class WithoutMaxRetries(Driver):
    """The driver of a package from which that feature was deleted."""

    def _with_max_retries(
        self,
        config: RetryConfig,
        value: Any,
        strategy: RetryStrategy | None,
        options: dict[str, Any],
    ) -> tuple[RetryConfig, Any]:
        """Return a config with what the argument ``max_retries`` asks for, and what :meth:`_show_given` needs of it."""
        if value is not UNSET:
            raise RetryConfigError("max_retries", value, "code", "max_attempts is allowed in its place")
        return config, None

    def _show_given(self, given: Any) -> None:
        """Show the ``max_retries`` that was given."""

    def _forget_shown(self) -> None:
        """Show none that was given."""

    def _policy(self) -> dict[str, Any]:
        """Return further attributes that make up the policy."""
        return {}


if not TYPE_CHECKING:  # pragma: no branch - a type checker reads the class above
    _module = found("urllib3_retry")
    AdapterBase = WithoutMaxRetries if _module is None else _module.MaxRetries
