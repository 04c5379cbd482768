"""What a call goes by: the call itself, as the driver and the features see it, and the plan of its adapter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from requests import PreparedRequest, Response

from ..checks import most_attempts
from ..classifiers.protocol import Vouches
from ..config.retry_config import RetryConfig
from ..config.retry_options import OperationOptions
from ..observing.events import ObservedOperation
from ..wire.state import read_part
from .machine import FirstGate, Remedy
from .policy import Policy
from .port import Feature, heard_by, hooked
from .scope import Scope, Scopes, no_quota
from .strategy import StandardRetryStrategy, is_built_in
from .time_limits import TimeLimits

if TYPE_CHECKING:
    from .foreign import ForeignOperation


@dataclass(eq=False, slots=True)
class Call:
    """One call of ``send``.

    :param config: of its adapter.
    :param request: the caller's; it is not changed.
    :param stream: the caller wants the body unread.
    :param timeout: the caller's, or else that of the option.
    :param how: the other arguments of ``send``.
    :param options: of the ``retry_options`` blocks around it.
    :param time_limits: its time-outs and deadline, or None.
    :param observed: the call as listeners see it, or None.
    :param data: the features' own state of this call.
    :param receives: goes on with a body that broke off, by a response of which nothing was read.
    """

    config: RetryConfig
    request: PreparedRequest
    stream: bool
    timeout: Any
    how: dict[str, Any]
    options: OperationOptions
    time_limits: TimeLimits | None
    observed: ObservedOperation | None
    data: dict[str, Any]
    receives: Callable[[Response], object] | None = None

    def begin(self, number: int, request: PreparedRequest) -> PreparedRequest:
        """Return the request to be sent for an attempt, which listeners may have changed."""
        return request if self.observed is None else self.observed.begin(number, request)

    @property
    def allowed(self) -> float | None:
        """The read time-out of the last attempt, in seconds; None for no limit."""
        return read_part(self.timeout if self.time_limits is None else self.time_limits.allowed)

    @property
    def deadline(self) -> float | None:
        """The moment on the adapter's clock by which any wait must end; None for no limit."""
        return None if self.time_limits is None or self.time_limits.deadline is None else self.time_limits.deadline.at


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """The guide of each call: an adapter's config, with all that would else be looked up each time.

    :param shown: what the adapter shows as the ``Retry`` of urllib3, which may be changed in place; None: nothing yet.
    :param begin_foreign: begins an operation of a strategy that is not built in; None: it is built in.
    :param by_origin: the scopes by the beginning of a URL; None: they are not found by that.
    :param most_attempts: of the strategy; None: it does not say.
    :param is_special: an option sets a time-out for each call, or there are listeners.
    :param begins_at_once: a first attempt needs nothing that the machine would have to ask for.
    :param gate_finders: and what follows are the hooks of the features; this one finds the gates to be passed.
    :param hears: the fields of which a response has one that those hooks take in; None: they take in each response.
    """

    config: RetryConfig
    strategy: Any
    policy: Policy
    scopes: Scopes
    by_origin: dict[str, Scope] | None
    listeners: Any
    begin_foreign: Callable[[str], ForeignOperation] | None
    most_attempts: int | None
    is_special: bool
    begins_at_once: bool
    gate_finders: tuple[Callable[..., FirstGate | None], ...]
    received: tuple[Callable[..., None], ...]
    hears: frozenset[str] | None
    remedies: tuple[Callable[..., Remedy | None], ...]
    on_verdict: tuple[Callable[..., None], ...]
    attempted: tuple[Callable[..., None], ...]
    waits: tuple[Callable[..., float], ...]
    waits_in_blocks: tuple[Callable[..., float], ...]
    vouch: tuple[Vouches, ...]
    shown: Any

    @classmethod
    def of(
        cls,
        config: RetryConfig,
        strategy: Any,
        features: tuple[Feature, ...],
        listeners: Any,
        *,
        by_origin: dict[str, Scope] | None,
        shown: Any,
    ) -> Plan:
        """Make it for a strategy, with the features that the config asks for."""
        is_ours, is_own, begin_foreign = isinstance(strategy, StandardRetryStrategy), is_built_in(strategy), None
        policy: Policy = strategy.policy if is_ours else Policy.of(config, features)
        if not is_own:
            from .foreign import ForeignOperation  # few programs have a strategy of their own

            fold = None if is_ours else policy.classifiers
            begin_foreign = partial(ForeignOperation, strategy, fold, policy.sees_successes)
        time_outs = config.operation_timeout, config.operation_attempt_timeout, config.timeout
        return cls(
            config,
            strategy,
            policy,
            strategy.scopes if is_own else Scopes(no_quota),
            by_origin,
            listeners,
            begin_foreign,
            most_attempts(strategy),
            (*time_outs, listeners) != (None, None, None, None),
            begin_foreign is None and not policy.sees_successes and config.idempotency_key is False,
            hooked(features, "gate"),
            hooked(features, "received"),
            None if listeners is not None and listeners.hears_bodies else heard_by(features, "received"),
            hooked(features, "remedy"),
            hooked(features, "on_verdict"),
            hooked(features, "attempted"),
            hooked(features, "wait", is_in_block=False),
            hooked(features, "wait"),
            tuple(item for item in policy.classifiers if isinstance(item, Vouches)),
            shown,
        )
