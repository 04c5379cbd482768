"""The transport adapter (contract 1): its options, its strategy, its pools. Sending is in :mod:`send_loop`."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection
from sys import _getframe
from typing import TYPE_CHECKING, Any, NamedTuple

from requests import PreparedRequest
from requests.adapters import HTTPAdapter

from .clock import SYSTEM_CLOCK, Clock
from .config.max_retries import (
    INNER_RETRY,
    UNSET,
    ChangedOr,
    ShownRetry,
    refuse_own_max_retries,
    translate,
    with_translated,
)
from .config.options import signature_with
from .config.retry_config import ADAPTER_OPTIONS, OPTIONS, RetryConfig, RetryOptions, unknown_option
from .config.sources import resolve
from .config.urllib3_retry import SOURCE, TRANSLATED, OptionsRetry, changed_options, own_methods
from .errors import RetryConfigError, RetryConfigWarning
from .forgetting import forgets_with_all
from .observing.listeners import SDK_HEADERS, Listeners
from .observing.telemetry import TELEMETRY
from .quotas.line import UNLIMITED
from .sending.send_loop import SendLoop, is_within_send
from .strategies.first_tries import BusyBesides
from .strategies.foreign import StrategyPort, adapt, check_beside_strategy, strategy_for
from .strategies.protocol import RetryStrategy
from .strategies.simple import SimpleRetryStrategy, is_built_in
from .urls import scope_of
from .wire.addresses import AddressFault, AddressMemory
from .wire.pools import use_our_pools
from .wire.state import LATE_PATCH, is_patched_late

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from urllib3.util.retry import Retry

PLAIN_SEND = getattr(HTTPAdapter.send, "__code__", None)
"""The code that passes ``max_retries`` to urllib3."""
POOL_DEFAULTS: dict[str, int] = {"pool_connections": 10, "pool_maxsize": 10, "pool_block": False}
"""The defaults of ``HTTPAdapter``."""
POLICY = ("clock", "retry_config", "strategy", "_given", "_is_shared", "_shown")
"""The attributes of an adapter that make up its policy."""


class AdapterSnapshot(NamedTuple):
    """An immutable view of what an adapter holds: its strategy's own, if any, and the addresses that failed lately."""

    strategy: Any
    addresses: tuple[AddressFault, ...]


class RetryAdapter(SendLoop):
    """A ``requests`` adapter that retries. Mount it; the code that sends requests stays as it is.

    Each send is one operation. A :class:`RetryStrategy` decides on its attempts, and the caller gets the last attempt's
    response or exception.

    :param pool_connections: as in ``HTTPAdapter``.
    :param pool_maxsize: as in ``HTTPAdapter``.
    :param max_retries: the number of retries; ``False`` is 0; a urllib3 ``Retry`` is translated. Not together with
        ``max_attempts``.
    :param pool_block: as in ``HTTPAdapter``.
    :param config: the policy, in place of options; options given beside it override it.
    :param strategy: any object with the three methods of :class:`RetryStrategy`, in place of ``mode``.
    :param defaults: options of a library that mounts the adapter for its users: the environment's values, and options
        given here, override them.
    :param clock: tells the time and sleeps; by default the built-in strategy's own, or the machine's.
    :param options: any option of :class:`RetryConfig`.
    :raises RetryConfigError: for a bad option, or options that contradict each other.
    :raises TypeError: for an unknown option.
    """

    _is_shared = False

    def __init__(
        self,
        pool_connections: int = 10,
        pool_maxsize: int = 10,
        # The type does not name UNSET, because callers do not pass it.
        max_retries: int | Retry | None = UNSET,  # type: ignore[assignment]
        pool_block: bool = False,
        *,
        config: RetryConfig | None = None,
        strategy: RetryStrategy | None = None,
        defaults: RetryConfig | None = None,
        clock: Clock | None = None,
        **options: Unpack[RetryOptions],
    ) -> None:
        known, others = self._own_options(dict(options))
        own = strategy.clock if isinstance(strategy, SimpleRetryStrategy) else SYSTEM_CLOCK
        self.clock: Clock = own if clock is None else clock
        self._given = strategy is not None
        self._configure(config, strategy, defaults, known, max_retries)
        self.__dict__.pop("max_retries", None)  # set before us, which with HTTPAdapter says nothing from here on
        pools: dict[str, Any] = {
            "pool_connections": pool_connections,
            "pool_maxsize": pool_maxsize,
            "pool_block": pool_block,
        }
        # A mix-in behind us may have other defaults, or not know these names.
        super().__init__(**{name: value for name, value in pools.items() if value != POOL_DEFAULTS[name]}, **others)
        self._use_our_pools()  # a subclass may have made its own
        if is_patched_late():
            warnings.warn(LATE_PATCH, RetryConfigWarning, stacklevel=2)

    def _own_options(self, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Separate our options from those of a mix-in behind us (contract 11.4)."""
        known = {name: options.pop(name) for name in tuple(options) if name in OPTIONS}
        if options and getattr(super().__init__, "__func__", None) is HTTPAdapter.__init__:
            raise TypeError(unknown_option(next(iter(options))))
        return known, options

    def _configure(
        self,
        config: RetryConfig | None,
        strategy: RetryStrategy | None,
        defaults: RetryConfig | None,
        options: dict[str, Any],
        max_retries: Any,
    ) -> None:
        translated = translate(max_retries)
        if translated:
            _refuse_beside_max_retries(max_retries, strategy, options)
        below = _checked(config, defaults)
        if strategy is not None:
            check_beside_strategy(strategy, config, {**below, **options})
        refuse_own_max_retries(type(self), RetryAdapter)
        base = strategy.config if isinstance(strategy, SimpleRetryStrategy) else config or RetryConfig()
        base = with_translated(base, translated).replace(**options)
        base = base if defaults is None else base.above(defaults)
        # A given strategy has its own policy; the environment only sets the adapter's own options.
        self.retry_config: RetryConfig = resolve(base, names=OPTIONS if strategy is None else ADAPTER_OPTIONS)
        self._use(strategy_for(self.retry_config, self.clock) if strategy is None else strategy)
        if translated:
            self._show(ShownRetry.of(max_retries, translated) or self._options_as_shown())

    def _use(self, strategy: RetryStrategy) -> None:
        """Adopt a strategy, and compute once what each send needs to know of it."""
        self._use_our_pools()  # unpickling has made new ones
        self._strategy = strategy
        config = self.retry_config
        self.port: StrategyPort = adapt(strategy, config)
        # A first attempt that goes well needs nothing of all this where the strategy's first token is free.
        is_special = not config.enabled or config.idempotency_key is not False
        needs: Collection[Any] | bool = is_special or self.port.needs_operation
        self._unusual = self._needs_operation = needs
        # A gate by itself needs no operation: an operation that waits at it has not sent anything yet.
        gates = self.port.gates
        self._shut: Collection[Any] = gates.shut if gates else ()
        if gates is not None:
            self.addresses.on_connect = gates.look_anew
        if isinstance(needs, set) and gates:
            self._needs_operation = BusyBesides(needs, gates.shut)
        # Asked on each first-try success. Where scopes are not origins, nothing is remembered.
        self._by_origin = not self._has_own_scopes() and is_built_in(strategy, "bucket", "limiter")
        hooks = strategy.hooks if self._by_origin and isinstance(strategy, SimpleRetryStrategy) else {}
        self._hook_at = hooks.get
        self._show(self._shown)
        forgets_with_all(self)

    def _listen(self) -> None:
        config = self.retry_config
        own = (SDK_HEADERS, *config.listeners) if config.sdk_headers else config.listeners
        if self._shown is not None and "increment" in own_methods(self._shown.retry):
            from .observing.own_increment import OwnIncrement  # few have one

            own = (*own, OwnIncrement(self._shown.retry))
        items = (*own, *TELEMETRY.listeners(config.telemetry, config.source("telemetry"), own))
        self.listeners: Any = Listeners(items) if items else None
        self._hears_attempts = self.listeners is not None and self.listeners.hears_attempts
        self._hears_bodies = self.listeners is not None and self.listeners.hears_bodies

    def _has_own_scopes(self) -> bool:
        own = getattr(self.scope_of, "__func__", None)
        return self.retry_config.scope is not None or own is not RetryAdapter.scope_of

    def _show(self, shown: ShownRetry | None) -> None:
        """Let ``max_retries`` return this ``Retry``, whose changes take effect; None: one that is made on demand."""
        if shown is None:
            self.__dict__.pop("_shown", None)
        else:
            self._shown = shown
        self._listen()
        config = self.retry_config
        self._has_limits = (config.operation_timeout, config.operation_attempt_timeout) != (None, None)
        # Each has the first attempt made by a longer way, though not by way of an operation.
        is_special = config.timeout is not None or self._hears_bodies
        in_full: Collection[Any] | ChangedOr | bool = self._has_limits or is_special or self._unusual
        if shown is not None and in_full is not True:
            in_full = ChangedOr(vars(shown.retry), shown.seen, in_full if isinstance(in_full, Collection) else ())
        self._in_full = in_full

    def _adopt(self, config: RetryConfig) -> None:
        """Adopt another policy. The strategy's quotas stay as they are, unless other sessions share it."""
        strategy = self._strategy
        if isinstance(strategy, SimpleRetryStrategy) and not self._is_shared:
            strategy = strategy.under(config)
        else:
            strategy = strategy_for(config, self.clock)
        self.retry_config = config
        self._is_shared = False
        self._use(strategy)

    def _heed_changes(self) -> bool:
        """Translate ``max_retries`` again if it was changed in place; return True if it was."""
        shown = self._shown
        if shown is None or not shown.is_changed():
            return False
        if self._given:
            raise _owned_by(self.strategy, shown.retry)
        now = shown.translated_anew()
        changes = changed_options(shown.options, now.options)
        self._adopt(self.retry_config.replace_from(dict.fromkeys(changes, SOURCE), **changes))
        self._show(now)  # only now: until then other threads translate it themselves
        return True

    def share_strategy(self) -> None:
        """Mark the strategy as shared with other sessions: setting ``max_retries`` replaces it for this one."""
        self._given, self._is_shared = False, True

    def _options_as_shown(self) -> ShownRetry:
        strategy = self.port.strategy
        is_ours = isinstance(strategy, SimpleRetryStrategy)
        config: RetryConfig = strategy.config if isinstance(strategy, SimpleRetryStrategy) else self.retry_config
        options = {name: getattr(self.retry_config if name in ADAPTER_OPTIONS else config, name) for name in TRANSLATED}
        most = config.most_attempts if is_ours else strategy.max_attempts or UNLIMITED
        options["max_attempts"] = most if self.retry_config.enabled else 1
        return ShownRetry(OptionsRetry.saying(options, transient_base=config.transient_base), options)

    def scope_of(self, request: PreparedRequest) -> str:
        """Return the scope of a request: the target's origin, or the result of the option ``scope``.

        :raises RetryConfigError: if that function returns anything but a string.
        """
        if self.retry_config.scope is None:
            return scope_of(str(request.url))
        scope = self.retry_config.scope(request)
        if not isinstance(scope, str):
            raise RetryConfigError("scope", scope, "the function's result", "a string is allowed")
        return scope

    @property
    def strategy(self) -> RetryStrategy:
        """The strategy. Another one may be assigned; operations under way go on with theirs."""
        return self._strategy

    @strategy.setter
    def strategy(self, strategy: RetryStrategy) -> None:
        check_beside_strategy(strategy, None, {})
        self._given, self._is_shared = True, False
        self.__dict__.pop("_original", None)
        self._use(strategy)
        self._show(None)

    @property
    def max_retries(self) -> Retry:
        """The adapter's own ``Retry``: the one it was given, or one that expresses the options in force.

        A change in place takes effect with the next send. An assigned value is translated, as in the constructor; on
        an adapter that :func:`install` made, it gives this session a policy of its own. urllib3 itself always gets
        another one, which retries nothing.

        :raises RetryConfigError: on assignment, if the value cannot be translated, or beside a given ``strategy``.
        """
        caller = _getframe(1)
        if caller.f_code is PLAIN_SEND or is_within_send(self, caller):
            return INNER_RETRY
        shown = self._shown
        if shown is None:
            if "_strategy" not in self.__dict__:  # a subclass may have set it before it called our constructor
                if "max_retries" not in self.__dict__:
                    raise AttributeError(f"{type(self).__name__!r} object has no attribute 'max_retries'")
                early: Retry = self.__dict__["max_retries"]
                return early
            # setdefault: threads that read it at the same moment get the same one.
            shown = self.__dict__.setdefault("_shown", self._options_as_shown())
            self._show(shown)
        return shown.retry

    @max_retries.setter
    def max_retries(self, value: Any) -> None:
        # HTTPAdapter's constructor assigns its own default before anything else.
        if "proxy_manager" not in self.__dict__:
            if "_strategy" not in self.__dict__:
                self.__dict__["max_retries"] = value
            return
        if self._given:
            raise _owned_by(self.strategy, value)
        options = translate(value)
        config = with_translated(self.retry_config, options)
        self.__dict__.setdefault("_original", (self._strategy, self.retry_config, self._shown, self._is_shared))
        self._adopt(config)
        self._show(ShownRetry.of(value, options) or self._options_as_shown())

    @max_retries.deleter
    def max_retries(self) -> None:
        # unittest.mock deletes it after a patch: this restores the policy from before the assignment.
        if "_original" in self.__dict__:
            strategy, self.retry_config, shown, self._is_shared = self.__dict__.pop("_original")
            self._use(strategy)
            self._show(shown)

    @property
    def addresses(self) -> AddressMemory:
        """The memory of the addresses that failed lately (contract 14.5). A copy of the adapter has its own."""
        # Asked for during construction, too. setdefault: threads that ask at the same moment get the same one.
        memory: AddressMemory | None = self.__dict__.get("_addresses")
        return memory or self.__dict__.setdefault("_addresses", AddressMemory(self.clock))

    def snapshot(self) -> AdapterSnapshot:
        """Return an immutable view of the strategy's state, and of the addresses that failed lately."""
        of_strategy = getattr(self.strategy, "snapshot", None)
        return AdapterSnapshot(None if of_strategy is None else of_strategy(), self.addresses.snapshot())

    def forget(self) -> None:
        """Begin anew: forget what its sends taught of services, as a new adapter knows nothing of them.

        Quotas are full, no service is known to be down, no limit to be used up and no address to fail. That goes for
        all adapters with the same strategy. Operations under way go on, and connections stay.
        """
        forget = getattr(self.strategy, "forget", None)
        if forget is not None:
            forget()
        self.addresses.forget()

    def _use_our_pools(self, manager: Any = None) -> None:
        # The attribute is missing during construction, and stays missing if init_poolmanager makes no pool manager.
        use_our_pools(manager or getattr(self, "poolmanager", None), self.addresses)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pool manager, with our own pools (contract 14.1)."""
        super().init_poolmanager(*args, **kwargs)
        self._use_our_pools()

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """Return the pool manager for a proxy, with our own pools (contract 14.1)."""
        manager = super().proxy_manager_for(proxy, **kwargs)
        self._use_our_pools(manager)
        return manager

    def _policy(self) -> dict[str, Any]:
        """Return the attributes that make up the policy, for :meth:`_follow`."""
        self._heed_changes()
        shown = None if self._shown is None else self._shown.copied()
        return {**{name: getattr(self, name) for name in POLICY}, "_shown": shown}

    def _follow(self, policy: dict[str, Any]) -> None:
        """Adopt the policy of another adapter."""
        vars(self).update((name, value) for name, value in policy.items() if name != "strategy")
        strategy, config = policy["strategy"], self.retry_config
        quota = strategy.config.quota if isinstance(strategy, SimpleRetryStrategy) else config.quota
        if quota is not config.quota and config.is_given("quota"):
            # One bucket, not two: the copy's config names the quota that the copy's strategy spends.
            self.retry_config = config.replace_from({"quota": config.source("quota")}, quota=quota)
        self._use(strategy)

    # Copies and pickles (contract 11.1) have the same configuration, fresh locks and full buckets.

    def __getstate__(self) -> dict[str, Any]:
        policy = self._policy()  # before HTTPAdapter reads max_retries, which makes one to show
        state = dict(super().__getstate__())
        state.pop("max_retries", None)
        return {**state, **policy}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "strategy"})
        self._follow({name: state[name] for name in POLICY})

    def _fresh_policy(self) -> dict[str, Any]:
        policy = self._policy()
        strategy = policy["strategy"]
        return {**policy, "strategy": copy.copy(strategy) if isinstance(strategy, SimpleRetryStrategy) else strategy}

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        other.__setstate__({**self.__getstate__(), **self._fresh_policy()})
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        other = memo[id(self)] = type(self).__new__(type(self))
        other.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return other

    def _check_picklable(self, protocol: Any) -> None:
        """Refuse what cannot be pickled. Pickle's own errors name a function's address, not the option to change."""
        objects = [name for name, option in OPTIONS.items() if option.not_from_environment]
        parts = {name: getattr(self.retry_config, name) for name in objects}
        for name, value in {**parts, "clock": self.clock, "strategy": self.strategy}.items():
            _check_picklable(name, value, protocol)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._check_picklable(protocol)  # only pickle calls this
        return super().__reduce_ex__(protocol)


def _check_picklable(name: str, value: Any, protocol: int) -> None:
    if isinstance(value, tuple):
        for number, item in enumerate(value):
            _check_picklable(f"{name}[{number}]", item, protocol)
        return
    import pickle

    try:
        pickle.dumps(value, protocol)
    except Exception as error:  # an object's own pickling may raise anything
        raise pickle.PicklingError(f"{name}={value!r} cannot be pickled: {error}") from error


def _checked(config: RetryConfig | None, defaults: RetryConfig | None) -> dict[str, Any]:
    """Refuse what is no config; return the options that a library's defaults set."""
    for name, value in (("config", config), ("defaults", defaults)):
        if not isinstance(value, RetryConfig | None):
            raise RetryConfigError(name, value, "code", "a RetryConfig is allowed")
    return {} if defaults is None else {name: getattr(defaults, name) for name in filter(defaults.is_given, OPTIONS)}


def _refuse_beside_max_retries(value: Any, strategy: RetryStrategy | None, options: dict[str, Any]) -> None:
    if "max_attempts" in options:
        raise RetryConfigError(SOURCE, value, "code", "only one of max_retries and max_attempts is allowed")
    if strategy is not None:
        raise _owned_by(strategy, value)


def _owned_by(strategy: RetryStrategy, value: Any) -> RetryConfigError:
    return RetryConfigError(
        SOURCE,
        value,
        "code",
        f"the policy belongs to the strategy that this adapter was given, strategy={strategy!r}: only one of the two "
        "is allowed. Give the strategy other options, or give the adapter config= in its place",
    )


# A mix-in before us (requests-ratelimiter) may pass on only the options in the signature.
RetryAdapter.__init__.__signature__ = signature_with(OPTIONS, RetryConfig.__annotations__, RetryAdapter.__init__)  # type: ignore[attr-defined]
