"""The transport adapter (contract 1): its options, its strategy, its pools. How it sends is in :mod:`send_loop`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from requests import PreparedRequest
from requests.adapters import HTTPAdapter

from .classifier import RetryClassifier, sees_successes
from .clock import SYSTEM_CLOCK, Clock
from .config import RetryConfig, RetryOptions
from .copying import CopiedAfresh
from .errors import RetryConfigError
from .first_tries import book_of, owed
from .given_strategy import check_beside_strategy, foreign_fold, gives_free_first_token
from .interfaces import RetryStrategy
from .listeners import Listeners
from .max_retries import INNER_RETRY, UNSET, translate, with_translated
from .nested_retries import refuse_own_max_retries
from .options import ADAPTER_OPTIONS, OPTIONS, unknown_option
from .resolve import resolve
from .scopes import scope_of
from .sdk_headers import SDK_HEADERS
from .send_loop import SendLoop
from .signature import with_options
from .strategies import strategy_for
from .strategies.simple import SimpleRetryStrategy
from .wire import watch

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from urllib3.util.retry import Retry


class RetryAdapter(CopiedAfresh, SendLoop):
    """A ``requests`` adapter that retries. Mount it, and call sites stay as they are.

    Each send is one operation: its attempts are decided by a :class:`RetryStrategy`, and what the caller gets is the
    last attempt's own response or exception.

    :param pool_connections: as in ``HTTPAdapter``.
    :param pool_maxsize: as in ``HTTPAdapter``.
    :param max_retries: ``0`` or ``False``: one attempt; an int: so many retries; a urllib3 ``Retry``: translated. Not
        together with ``max_attempts``.
    :param pool_block: as in ``HTTPAdapter``.
    :param config: the policy, in place of options; options given beside it override it.
    :param strategy: any object with the three methods of :class:`RetryStrategy`, in place of ``mode``.
    :param clock: tells the time and sleeps; by default the built-in strategy's own, or the machine's.
    :param options: any option of :class:`RetryConfig`.
    :raises RetryConfigError: for a bad option or options that contradict each other.
    :raises TypeError: for an option that there is not.
    """

    def __init__(
        self,
        pool_connections: int = 10,
        pool_maxsize: int = 10,
        # The mark for "not given" is no value to give, so the type does not name it.
        max_retries: int | Retry | None = UNSET,  # type: ignore[assignment]
        pool_block: bool = False,
        *,
        config: RetryConfig | None = None,
        strategy: RetryStrategy | None = None,
        clock: Clock | None = None,
        **options: Unpack[RetryOptions],
    ) -> None:
        known, others = self._own_options(dict(options))
        translated = translate(max_retries)
        if translated and "max_attempts" in known:
            raise RetryConfigError(
                "max_retries", max_retries, "code", "only one of max_retries and max_attempts is allowed"
            )
        own = strategy.clock if isinstance(strategy, SimpleRetryStrategy) else SYSTEM_CLOCK
        self.clock: Clock = own if clock is None else clock
        self._given = strategy is not None
        self._configure(config, strategy, known, translated)
        super().__init__(pool_connections=pool_connections, pool_maxsize=pool_maxsize, pool_block=pool_block, **others)
        watch(self.poolmanager)  # a subclass may have made one without asking us

    def _own_options(self, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Our options, and those of a mix-in behind us (contract 11.4)."""
        known = {name: value for name, value in options.items() if name in OPTIONS}
        others = {name: value for name, value in options.items() if name not in OPTIONS}
        following = getattr(super().__init__, "__func__", None)
        if others and following is HTTPAdapter.__init__:
            raise TypeError(unknown_option(next(iter(others))))
        return known, others

    def _configure(
        self,
        config: RetryConfig | None,
        strategy: RetryStrategy | None,
        options: dict[str, Any],
        translated: dict[str, Any],
    ) -> None:
        if strategy is not None:
            check_beside_strategy(strategy, config, {**translated, **options})
        if not isinstance(config, RetryConfig | None):
            raise RetryConfigError("config", config, "code", "a RetryConfig is allowed")
        refuse_own_max_retries(type(self), RetryAdapter)
        base = strategy.config if isinstance(strategy, SimpleRetryStrategy) else config or RetryConfig()
        base = with_translated(base, translated).replace(**options)
        # A strategy has its own policy, whoever made it; the environment can say how the adapter treats it.
        self.retry_config: RetryConfig = resolve(base, names=OPTIONS if strategy is None else ADAPTER_OPTIONS)
        self._use(strategy_for(self.retry_config, self.clock) if strategy is None else strategy)

    def _use(self, strategy: RetryStrategy) -> None:
        """Adopt a strategy, and work out once what each send needs to know of it."""
        if "poolmanager" in self.__dict__:
            watch(self.poolmanager)  # unpickled just now, and made without asking us
        self._strategy = strategy
        config = self.retry_config
        self.foreign_fold: tuple[RetryClassifier, ...] | None = None
        if isinstance(strategy, SimpleRetryStrategy):
            self.sees_successes: bool = strategy.sees_successes
        else:
            self.foreign_fold = foreign_fold(config)
            self.sees_successes = any(map(sees_successes, self.foreign_fold))
        # A first attempt that goes well needs nothing of all this where the strategy's first token is free.
        self._needs_operation: Collection[Any] | bool = (
            not gives_free_first_token(strategy)
            or self.sees_successes
            or not config.enabled
            or not config.preload_content
            or config.timeout is not None
            or config.idempotency_key is not False
            or config.operation_timeout is not None
            or config.operation_attempt_timeout is not None
            # Empty until a server throttles; from then on each attempt needs a permit.
            or getattr(strategy, "throttled", hasattr(strategy, "send_permit"))
        )
        self.ask_permit: Any | None = getattr(strategy, "send_permit", None)
        # Read on each first-try success: empty where there is nothing to book.
        self._owed = owed(strategy)
        self._book = book_of(strategy, self.scope_of, by_url=config.scope is None)
        items = (SDK_HEADERS, *config.listeners) if config.sdk_headers else config.listeners
        self.listeners: Any = Listeners(items) if items else None
        self._in_full = self.listeners is not None or self._needs_operation

    def scope_of(self, request: PreparedRequest) -> str:
        """The scope of a request: the target's origin, or what the option ``scope`` says.

        :raises RetryConfigError: if the function gives something that is no text.
        """
        if self.retry_config.scope is None:
            return scope_of(str(request.url))
        scope = self.retry_config.scope(request)
        if not isinstance(scope, str):
            raise RetryConfigError("scope", scope, "the function's result", "a text is allowed")
        return scope

    @property
    def strategy(self) -> RetryStrategy:
        """Who decides. Another strategy may be assigned; operations under way go on with theirs."""
        return self._strategy

    @strategy.setter
    def strategy(self, strategy: RetryStrategy) -> None:
        check_beside_strategy(strategy, None, {})
        self._given = True
        self._use(strategy)

    @property
    def max_retries(self) -> Retry:
        """What urllib3 is given: a ``Retry`` that retries nothing. Assigning translates, as the constructor does."""
        return INNER_RETRY

    @max_retries.setter
    def max_retries(self, value: Any) -> None:
        # HTTPAdapter's constructor assigns its own default before there are pools; that says nothing.
        if "poolmanager" in self.__dict__:
            translated = translate(value)
            if self._given:
                check_beside_strategy(self.strategy, None, translated)
            self.retry_config = with_translated(self.retry_config, translated)
            self._use(strategy_for(self.retry_config, self.clock))

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pool manager, with pools that see what happens on the wire (contract 14.1)."""
        super().init_poolmanager(*args, **kwargs)
        watch(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """The pool manager for a proxy, likewise."""
        manager = super().proxy_manager_for(proxy, **kwargs)
        watch(manager)
        return manager


# A mix-in before us may pass on only what it finds in the signature (requests-ratelimiter does).
RetryAdapter.__init__.__signature__ = with_options(RetryAdapter.__init__)  # type: ignore[attr-defined]
