"""The transport adapter (contract 1): its options, its strategy, its pools. Sending is in :mod:`.core.loop`."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

from requests import PreparedRequest, Response, Session
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.util.retry import Retry

from .checks import Unshown
from .classifiers.transport_faults import cause_in_words
from .clock import SYSTEM_CLOCK, Clock, checked_clock
from .config.beside import config_of, warn_of_assigned
from .config.options import LIBRARY, NOT_OURS, UNSET, signature_with, warn_of_void
from .config.retry_config import (
    ADAPTER_OPTIONS,
    DEFAULTS,
    IN_THE_PROGRAM,
    JUDGING_OPTIONS,
    OPTIONS,
    PUBLISHED_CAPACITY,
    RetryConfig,
    RetryOptions,
    unknown_option,
)
from .config.retry_options import current_options
from .config.sources import resolve
from .core.call import Call, Plan
from .core.loop import run
from .core.policy import Policy, classifiers_beside
from .core.port import Feature, composed, overrides
from .core.scope import Scopes, no_quota
from .core.strategy import RetryStrategy, StandardRetryStrategy
from .errors import RetryConfigError, RetryConfigWarning
from .features.table import features_of, listeners_of, opener, strategy_for
from .features.urllib3_retry import MaxRetries, beneath
from .forksafe import forgets_with_all
from .observing.events import Listeners
from .observing.history import ATTRIBUTE, SENT_ONCE, STARTED, AttemptRecord, sent_once
from .observing.summary import Counters
from .urls import ORIGIN, scope_name, scope_of
from .wire.connect import Opener
from .wire.pools import PoolKeys, prepare_pool, use_our_connections, use_our_pools, verify_key
from .wire.response import CheckedResponse
from .wire.state import LATE_PATCH, is_patched_late, this_thread

if TYPE_CHECKING:
    from typing_extensions import Unpack

else:  # pragma: no branch - for typing.get_type_hints
    from .typing_names import Unpack

S = TypeVar("S", bound=Session)

SHARED = "shared"
"""The value of ``strategy`` for the process-wide retry budgets."""
BUDGET_OPTIONS = frozenset({"mode", "quota", "retry_spec", "aws_config"})
"""The options that define a strategy's retry budgets: a single adapter cannot override them."""
OF_NO_STRATEGY = ADAPTER_OPTIONS - JUDGING_OPTIONS
"""The options that a built-in strategy ignores."""
SHARED_OPTIONS = OPTIONS.keys() - BUDGET_OPTIONS | {"mode"}
"""The options that the environment sets with ``strategy="shared"``."""
POOL_DEFAULTS: dict[str, int] = {"pool_connections": 10, "pool_maxsize": 10, "pool_block": False}
BUILD_KEY: Any = getattr(HTTPAdapter, "build_connection_pool_key_attributes", None)
"""Makes the key of a pool, since requests 2.32.3."""
REQUEST_URL: Any = HTTPAdapter.request_url
STATE_KEY = "policy"
"""The key of our state in a pickle, next to the attributes of ``HTTPAdapter``; the same as in earlier releases."""


class AdapterSnapshot(NamedTuple):
    """An immutable view of an adapter's state: its strategy's, if any, and the addresses that failed recently."""

    strategy: Any
    addresses: tuple[Any, ...]


class RetryAdapter(MaxRetries):
    """A ``requests`` adapter that retries. Mount it; the code that sends requests stays as it is.

    Each send is one operation. A :class:`RetryStrategy` decides on its attempts, and the caller gets the last attempt's
    response or exception.

    :param pool_connections: as in ``HTTPAdapter``.
    :param pool_maxsize: as in ``HTTPAdapter``.
    :param max_retries: the number of retries; ``False`` is 0; a urllib3 ``Retry`` is translated. Not together with
        ``max_attempts``. While retries are switched off, urllib3 applies it, as with ``HTTPAdapter``.
    :param pool_block: as in ``HTTPAdapter``.
    :param config: a :class:`RetryConfig`, in place of options; options given beside it override it.
    :param strategy: any object with the three methods of :class:`RetryStrategy`, in place of ``mode``. If it has a
        ``config`` (a :class:`RetryConfig`), the adapter uses it. Options given with a built-in strategy apply to this
        adapter, with the strategy's retry budgets. ``"shared"``: the built-in one, with retry budgets shared by all
        adapters of the process that use it.
    :param defaults: options of a library that mounts the adapter for its users: the environment's values, and options
        given here, override them.
    :param clock: tells the time and sleeps; by default the built-in strategy's own, or the machine's. With a built-in
        strategy, no other clock is allowed.
    :param options: any option of :class:`RetryConfig`.
    :raises RetryConfigError: for a bad option, or options that contradict each other.
    :raises TypeError: for an unknown option.
    """

    clock: Clock
    retry_config: RetryConfig
    counters: Counters
    _above: ClassVar[type[HTTPAdapter]]
    """The class after which ``super()`` looks for the ``send`` to call, in the method resolution order."""

    def __init_subclass__(cls, **given: Any) -> None:
        """Let a mixed-in adapter send that is not an ``HTTPAdapter``, such as a mock of requests-mock."""
        super().__init_subclass__(**given)
        bases = cls.__mro__[cls.__mro__.index(RetryAdapter) + 1 :]
        first = next(base for base in bases if "send" in vars(base))
        others = bases[bases.index(HTTPAdapter) + 1 : bases.index(BaseAdapter)]
        is_behind = first is HTTPAdapter and any("send" in vars(base) for base in others)
        cls._above = HTTPAdapter if is_behind else RetryAdapter

    def __init__(
        self,
        pool_connections: int = 10,
        pool_maxsize: int = 10,
        # The type does not name UNSET, because callers do not pass it.
        max_retries: int | Retry | None = UNSET,
        pool_block: bool = False,
        *,
        config: RetryConfig | None = None,
        strategy: RetryStrategy | Literal["shared"] | None = None,
        defaults: RetryConfig | None = None,
        clock: Clock | None = None,
        **options: Unpack[RetryOptions],
    ) -> None:
        known, others = self._own_options(dict(options))
        own = strategy.clock if isinstance(strategy, StandardRetryStrategy) else SYSTEM_CLOCK
        self.clock = own if clock is None else checked_clock(clock)
        _check_clock(strategy, self.clock)
        self._given = strategy is not None
        self._configure(config, strategy, defaults, known, max_retries)
        self.__dict__.pop("max_retries", None)  # one set before this call has no effect, as with HTTPAdapter
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
        """Separate our options from those of a mix-in behind us (contract 11.2)."""
        known = {name: options.pop(name) for name in tuple(options) if name in OPTIONS}
        if options and getattr(super().__init__, "__func__", None) is HTTPAdapter.__init__:
            raise TypeError(unknown_option(next(iter(options))))
        return known, options

    def _configure(
        self,
        config: RetryConfig | None,
        strategy: RetryStrategy | Literal["shared"] | None,
        defaults: RetryConfig | None,
        options: dict[str, Any],
        max_retries: Any,
    ) -> None:
        self.counters, self._pool_keys = Counters(), PoolKeys()
        below = _checked(config, defaults)
        own: Any = None if isinstance(strategy, str) and strategy == SHARED else strategy
        if own is not None:
            _check_beside(own, config, {**below, **dict.fromkeys(options, "code")}, {**_given(defaults), **options})
        base = _base(own, config)
        base, self._shown = self._with_max_retries(base, max_retries, own, options)
        base = base.replace(**options)
        base = base if defaults is None else base.above(defaults)
        self.retry_config = resolve(base, names=_options_of_environment(strategy))
        self._beneath = beneath(max_retries, self.retry_config)
        if strategy == SHARED:
            own = shared_strategy(self.retry_config, self.clock)
        elif own is None:
            own = strategy_for(self.retry_config, self.clock)
        elif isinstance(own, StandardRetryStrategy) and not OF_NO_STRATEGY.issuperset((*below, *options)):
            own = own.under(self.retry_config)
        self._use(own)

    def _use(self, strategy: RetryStrategy) -> None:
        """Adopt a strategy, and compute once what each send needs to know about it."""
        self._use_our_pools()  # unpickling has made new ones
        self._strategy = strategy
        self.features: tuple[Feature, ...] = features_of(self.retry_config, strategy, self.clock)
        self.addresses.max_idle = self.retry_config.max_idle
        self._make_plan()
        forgets_with_all(self)

    def _make_plan(self) -> None:
        config = self.retry_config
        items = listeners_of(config, config.listeners)
        self.listeners: Any = Listeners(items) if items else None
        strategy, features = self._strategy, self.features
        own = strategy if isinstance(strategy, StandardRetryStrategy) else None
        self.plan: Plan = Plan(
            config,
            strategy,
            policy=Policy.of(config, features) if own is None or own.config is not config else own.policy,
            beside=classifiers_beside(config, features) if own is None else (),
            scopes=Scopes(no_quota),
            send=composed(features),
            ahead=tuple(feature for feature in features if overrides(feature, "check_ahead")),
            listening=tuple(feature for feature in features if overrides(feature, "judged")),
            listeners=self.listeners,
            has_limits=(config.operation_timeout, config.operation_attempt_timeout) != (None, None),
        )

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        """Send a request, as often as the strategy allows; the arguments are those of ``HTTPAdapter.send``."""
        how = Unshown(verify=verify, cert=cert, proxies=proxies)
        del proxies  # an error's traceback shows the locals of this frame, and the URLs of proxies have passwords
        options = current_options.get()
        if not self.plan.config.enabled or options.enabled is False:
            return self._send_once(request, stream, timeout, how)
        if this_thread.retries_off:
            return self._send_for_a_body(request, stream, timeout, how)
        return run(Call(self, request, stream, timeout, how, options))

    def _send_attempt(self, call: Call) -> Response:
        """Make one attempt of a call with the adapter below: ``HTTPAdapter``, or a mix-in."""
        request, outer = call.begin_attempt(), this_thread.sender
        this_thread.connecting = this_thread.peer = None
        try:
            this_thread.sender = self
            allowed = call.timeout if call.limits is None else call.limits.begin(call.timeout)
            response = call.response = super(self._above, self).send(
                request, stream=call.stream, timeout=allowed, **call.how
            )
        finally:
            this_thread.sender = outer
        if call.rest is not None:
            call.rest.receive(response, call.as_sent)
        return response

    def _send_once(self, request: PreparedRequest, stream: bool, timeout: Any, how: dict[str, Any]) -> Response:
        """Send once, without checking that head and body are complete (contract 10.2): urllib3 applies a given
        ``max_retries``, as with ``HTTPAdapter``.
        """
        outer, started = (this_thread.retries_off, this_thread.sender), self.clock.now()
        try:
            this_thread.retries_off, this_thread.sender = True, self
            response = super(self._above, self).send(request, stream=stream, timeout=timeout, **how)
        except Exception as error:
            took = self.clock.now() - started
            name, cause = type(error).__name__, cause_in_words(error)
            record = AttemptRecord(1, self.clock.wall() - took, took, error=name, cause=cause)
            setattr(error, ATTRIBUTE, sent_once(record))
            raise
        finally:
            this_thread.retries_off, this_thread.sender = outer
            this_thread.connecting = False
        vars(response).update({STARTED: started, SENT_ONCE: True})
        original = getattr(response.raw, "_original_response", None)
        if isinstance(original, CheckedResponse):
            original.retries_off = True  # its body is read later
        return response

    def _send_for_a_body(self, request: PreparedRequest, stream: bool, timeout: Any, how: dict[str, Any]) -> Response:
        """Send, with retries, a request made by the body of another request that is sent without them."""
        outer = this_thread.retries_off, this_thread.sender
        try:
            this_thread.retries_off, this_thread.sender = False, None
            return self.send(request, stream=stream, timeout=timeout, **how)
        finally:
            this_thread.retries_off, this_thread.sender = outer
            this_thread.connecting = False

    def scope_of(self, request: PreparedRequest) -> str:
        """Return the scope of a request: the target's origin, or the result of the option ``scope``.

        :raises RetryConfigError: if that function returns anything but a string.
        """
        if self.retry_config.scope is None:
            return scope_of(str(request.url))
        scope = self.retry_config.scope(request)
        if not isinstance(scope, str):
            raise RetryConfigError("scope", scope, "the function's result", "a string is allowed")
        return scope_name(scope)

    @property
    def strategy(self) -> RetryStrategy:
        """The strategy. Another one may be assigned; operations under way keep theirs."""
        strategy: RetryStrategy = self._strategy
        return strategy

    @strategy.setter
    def strategy(self, strategy: RetryStrategy) -> None:
        _check_beside(strategy, None, {}, {})
        _check_clock(strategy, self.clock)
        warn_of_assigned(strategy, self.retry_config)
        self._given = True
        self._use(strategy)
        self._forget_shown()

    @property
    def addresses(self) -> Opener:
        """The opener of its sockets, which remembers recently failed addresses (contract 14.5). A copy has its own."""
        # Also used during construction. setdefault: threads that get here at the same moment get the same one.
        known: Opener | None = self.__dict__.get("_addresses")
        return known or self.__dict__.setdefault("_addresses", opener(self.clock))

    def snapshot(self) -> AdapterSnapshot:
        """Return an immutable view of the strategy's state, and of the addresses that failed recently."""
        of_strategy = getattr(self.strategy, "snapshot", None)
        return AdapterSnapshot(None if of_strategy is None else of_strategy(), self.addresses.snapshot())

    def forget(self) -> None:
        """Start over: forget everything learned about services, like a new adapter.

        Quotas are full, and no service is known to be down, no limit to be used up, no address to fail. This applies to
        all adapters with the same strategy. Operations under way go on, and connections stay open.
        """
        forget = getattr(self.strategy, "forget", None)
        if forget is not None:
            forget()
        self.addresses.forget()
        self.counters.forget()

    def get_connection_with_tls_context(
        self, request: PreparedRequest, verify: Any, proxies: Any = None, cert: Any = None
    ) -> Any:
        """Return the pool for a request, as ``HTTPAdapter`` does.

        Without a proxy and a client certificate, the pool manager is asked with the key of an earlier request. A
        subclass's own way to find a pool or its key takes precedence.
        """
        build = getattr(getattr(self, "build_connection_pool_key_attributes", None), "__func__", None)
        is_usual = BUILD_KEY is not None and build is BUILD_KEY
        checks = None if cert is not None or proxies or not is_usual else verify_key(verify)
        manager, origin = getattr(self, "poolmanager", None), ORIGIN(request.url)[0]  # type: ignore[arg-type, index]
        pool = None if checks is None else self._pool_keys.pool(manager, origin, checks)
        if pool is None:
            # A mix-in behind us may have pools of its own.
            found = super().get_connection_with_tls_context(request, verify, proxies=proxies, cert=cert)
            pool = prepare_pool(found, self.addresses)
            if checks is not None:
                self._pool_keys.remember(manager, origin, checks, pool)
        return pool

    def request_url(self, request: PreparedRequest, proxies: Any) -> str:
        """Return the target to be sent, like ``HTTPAdapter``, which always parses the URL to look for a proxy.

        Releases of requests treat a path that begins with two slashes differently.
        """
        if not proxies and getattr(super().request_url, "__func__", None) is REQUEST_URL:
            target: str = request.path_url
            if not target.startswith("//"):
                return target
        return super().request_url(request, proxies)

    def _use_our_pools(self, manager: Any = None) -> None:
        # The attribute is missing during construction, and stays missing if init_poolmanager makes no pool manager.
        use_our_pools(manager or getattr(self, "poolmanager", None), self.addresses)
        self._use_our_connections()

    def _use_our_connections(self) -> None:
        use_our_connections(self, self.addresses, RetryAdapter)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pool manager, with our own pools (contract 14.1)."""
        super().init_poolmanager(*args, **kwargs)
        self._use_our_pools()

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """Return the pool manager for a proxy, with our own pools (contract 14.1)."""
        manager = super().proxy_manager_for(proxy, **kwargs)
        self._use_our_pools(manager)
        return manager

    def _state_to_copy(self) -> dict[str, Any]:
        return {
            **super()._state_to_copy(),
            "clock": self.clock,
            "retry_config": self.retry_config,
            "strategy": self._strategy,
            "_given": self._given,
        }

    def _take_on(self, state: dict[str, Any]) -> None:
        self.counters, self._pool_keys = Counters(), PoolKeys()
        vars(self).update((name, value) for name, value in state.items() if name != "strategy")
        strategy, config = state["strategy"], self.retry_config
        quota = (config_of(strategy) or config).quota
        if quota is not config.quota and config.is_given("quota"):
            # One bucket, not two: the copy's config names the quota that the copy's strategy spends.
            self.retry_config = config.replace_from({"quota": config.source("quota")}, quota=quota)
        self._use(strategy)

    # Copies and pickles (contract 11.1) have the same configuration, fresh locks and full buckets.

    def __getstate__(self) -> dict[str, Any]:
        ours = self._state_to_copy()
        state = dict(super().__getstate__())
        state.pop("max_retries", None)
        return {**state, STATE_KEY: ours}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ours = state[STATE_KEY]
        self.clock = ours["clock"]  # for the pools, which come first
        super().__setstate__({name: value for name, value in state.items() if name != STATE_KEY})
        self._take_on(ours)

    def _state_with_fresh_strategy(self) -> dict[str, Any]:
        state = self._state_to_copy()
        strategy = state["strategy"]
        return {**state, "strategy": copy.copy(strategy) if hasattr(strategy, "__copy__") else strategy}

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        other.__setstate__({**self.__getstate__(), STATE_KEY: self._state_with_fresh_strategy()})
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        other = memo[id(self)] = type(self).__new__(type(self))
        other.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return other


def _options_of_environment(strategy: object) -> Collection[str]:
    """Return the options that the environment sets: only the adapter's beside a strategy, which has its own config."""
    if strategy is None:
        return OPTIONS
    return SHARED_OPTIONS if isinstance(strategy, str) else ADAPTER_OPTIONS


def shared_strategy(config: RetryConfig, clock: Clock) -> StandardRetryStrategy:
    """Return a strategy with the process-wide retry budgets and this config.

    :raises RetryConfigError: for a config that asks for a budget of its own.
    """
    own = config.effective_quota
    if own == "payoff" and config.aws_config is not False and not config.is_given("quota"):
        own = PUBLISHED_CAPACITY  # if an AWS variable or profile sets anything
    if own != "payoff":
        raise RetryConfigError(
            "quota",
            own,
            "aws_config" if config.aws_config is not False else config.source("quota"),
            "beside strategy='shared' only 'payoff' is allowed: its retry budgets are those of the process",
        )
    key = config.mode, clock
    shared = _shared.get(key) or _shared.setdefault(key, strategy_for(RetryConfig(mode=config.mode), clock))
    return shared.under(config)


_shared: dict[tuple[str, Clock], StandardRetryStrategy] = {}
"""The strategies of ``strategy="shared"``, by mode and clock."""


def _given(defaults: RetryConfig | None) -> dict[str, Any]:
    """Return the options that a library's defaults set."""
    return {} if defaults is None else {name: getattr(defaults, name) for name in filter(defaults.is_given, OPTIONS)}


def _base(strategy: object, config: RetryConfig | None) -> RetryConfig:
    """Return the config that an adapter uses where nothing else is given: its strategy's, or its own."""
    theirs = config_of(strategy)
    if theirs is None:
        return config or DEFAULTS
    # A custom strategy applies all other options itself.
    return theirs if isinstance(strategy, StandardRetryStrategy) else theirs.only(ADAPTER_OPTIONS | JUDGING_OPTIONS)


def _checked(config: RetryConfig | None, defaults: RetryConfig | None) -> dict[str, str]:
    """Refuse anything but a config; return the source of each option that a library's defaults set."""
    for name, value in (("config", config), ("defaults", defaults)):
        if not isinstance(value, RetryConfig | None):
            raise RetryConfigError(name, value, "code", "a RetryConfig is allowed")
    return dict.fromkeys(_given(defaults), LIBRARY)


def _check_beside(
    strategy: object, config: RetryConfig | None, sources: dict[str, str], options: dict[str, Any]
) -> None:
    """Refuse options that would have no effect, because the given strategy has its own.

    A built-in one accepts other options for this adapter, but its retry budgets are fixed.

    :param sources: the sources of the options.
    """
    if isinstance(strategy, type) or not isinstance(strategy, RetryStrategy):
        raise RetryConfigError(
            "strategy",
            strategy,
            "code",
            "'shared', or an object with acquire_initial_retry_token, refresh_retry_token_for_retry and "
            "record_success, is allowed",
        )
    if config is not None and config_of(strategy) is not None:
        raise RetryConfigError("config", config, "code", "only one of config and a strategy that has one is allowed")
    if config is not None:
        options = {**_given(config), **options}
        sources = {**{name: config.source(name) for name in options}, **sources}
    is_built_in = isinstance(strategy, StandardRetryStrategy)
    ours = OPTIONS.keys() - BUDGET_OPTIONS if is_built_in else ADAPTER_OPTIONS | JUDGING_OPTIONS
    for name, value in options.items():
        if name in ours:
            continue
        if sources[name] not in IN_THE_PROGRAM | {LIBRARY}:
            warn_of_void(name, value, sources[name], NOT_OURS)
            continue
        allowed = f"it belongs to the strategy: give it to {strategy!r} instead"
        raise RetryConfigError(name, value, sources[name], allowed)


def _check_clock(strategy: object, clock: Clock) -> None:
    """Refuse a built-in strategy whose clock is not its adapter's: waits on one would not advance the other."""
    if isinstance(strategy, StandardRetryStrategy) and strategy.clock is not clock:
        allowed = f"the clock of the strategy, {strategy.clock!r}, is allowed: give both the same one"
        raise RetryConfigError("clock", clock, "code", allowed)


# A mix-in before us (requests-ratelimiter) may pass on only the options in the signature.
RetryAdapter._above = RetryAdapter
RetryAdapter.__init__.__signature__ = signature_with(OPTIONS, RetryConfig.__annotations__, RetryAdapter.__init__)  # type: ignore[attr-defined]


def mount(
    session: S,
    *,
    at: str | None = None,
    pool_maxsize: int = 10,
    config: RetryConfig | None = None,
    strategy: RetryStrategy | Literal["shared"] | None = None,
    defaults: RetryConfig | None = None,
    **options: Unpack[RetryOptions],
) -> S:
    """Mount one shared :class:`RetryAdapter` on ``http://`` and ``https://``, and return the session.

    >>> session = mount(requests.Session(), max_attempts=5)

    :param at: the URL to mount at, in place of ``http://`` and ``https://``. It takes precedence over an adapter that
        the program has, or mounts later, at a shorter one.
    :param pool_maxsize: as in ``HTTPAdapter``: the number of connections kept to each host.
    :param config: a :class:`RetryConfig`, in place of options.
    :param strategy: any retry strategy, in place of ``mode``; or ``"shared"``: all adapters of the process that use it
        share their retry budgets, which outlast a session made for a single call.
    :param defaults: options of a library that mounts the adapter for its users: the environment's values, and options
        given here, override them.
    :param options: any option of :class:`RetryConfig`.
    :raises RetryConfigError: for a bad option.
    """
    prefixes: tuple[Any, ...] = ("http://", "https://") if at is None else (at,)
    if not all(isinstance(prefix, str) and "://" in prefix for prefix in prefixes):
        raise RetryConfigError("at", at, "code", "a URL, or its beginning, with a scheme such as https:// is allowed")
    adapter = RetryAdapter(pool_maxsize=pool_maxsize, config=config, strategy=strategy, defaults=defaults, **options)
    for prefix in prefixes:
        session.mount(prefix, adapter)
    return session
