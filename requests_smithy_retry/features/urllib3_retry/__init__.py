"""``max_retries`` of an adapter (contract 2, 4.2): a urllib3 ``Retry`` is translated, and one is shown to who reads it.

A ``Retry`` is never run beneath our own retries. The one that an adapter shows is its own: the one that it was given,
or one that says the options in force. A change in place is noticed by comparing it with what it looked like.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from requests import Response
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from ...checks import most_attempts
from ...clock import Clock
from ...config.options import UNSET
from ...config.retry_config import ADAPTER_OPTIONS, RetryConfig
from ...core.line import UNLIMITED
from ...core.strategy import RetryStrategy, StandardRetryStrategy
from ...errors import RetryConfigError
from ...observing.recorder import Recorder
from ...wire.state import this_thread


class InnerRetry(Retry):
    """Retries nothing, even if it is changed. Each response refers to it (``response.raw.retries``)."""

    def __init__(self) -> None:
        vars(self).update(vars(Retry(0, read=False)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{name} cannot be set: urllib3 was given this Retry beneath a RetryAdapter. Change adapter.max_retries"
        )

    def is_retry(self, *_: Any, **__: Any) -> bool:
        return False

    def new(self, **options: Any) -> Any:
        return Retry(0, read=False).new(**options)

    def __reduce__(self) -> Any:
        return Retry, (0, None, False)


INNER_RETRY: Retry = InnerRetry()


def translate_retry(retry: Retry) -> dict[str, Any]:
    """Return the options that a ``Retry`` asks for."""
    from .translation import translate_retry  # few programs give one

    return translate_retry(retry)


def translate(max_retries: Any) -> dict[str, Any]:
    """Return the options that a ``max_retries`` asks for: a number of retries, None or a urllib3 ``Retry``."""
    if max_retries is UNSET:
        return {}
    if isinstance(max_retries, InnerRetry):
        return {"max_attempts": 1}
    if max_retries is None:
        return {"max_attempts": translate_retry(Retry.DEFAULT)["max_attempts"]}
    if isinstance(max_retries, Retry):
        return translate_retry(max_retries)
    if isinstance(max_retries, (int, float)) and max_retries is not True and max_retries >= 0:
        if max_retries == math.inf:
            return {"max_attempts": UNLIMITED}
        if max_retries == int(max_retries):
            return {"max_attempts": int(max_retries) + 1}
    raise RetryConfigError(
        "max_retries",
        max_retries,
        "code",
        "a whole number of retries (0 or more), False, None or a urllib3 Retry is allowed",
    )


def with_translated(config: RetryConfig, translated: dict[str, Any]) -> RetryConfig:
    """Return a config with the options of a ``max_retries`` in place of those of an earlier one."""
    if not translated:
        return config
    return config.without("max_retries").replace_from(dict.fromkeys(translated, "max_retries"), **translated)


class ShownRetry:
    """The ``Retry`` that an adapter shows, with its settings and its options at that time."""

    def __init__(self, retry: Retry, options: dict[str, Any]) -> None:
        # A later change in place does not reach these.
        self.seen: dict[str, Any] = {
            name: copy.copy(value) if isinstance(value, (set, list, dict)) else value
            for name, value in vars(retry).items()
        }
        self.retry = retry
        self.options = options

    def used(self, retries: int, history: tuple[Any, ...]) -> Retry:
        left = copy.copy(self.retry)
        if left.total:
            left.total = max(left.total - retries, 0)
        left.history = history
        return left


class MaxRetries(HTTPAdapter):
    """The part of the adapter."""

    _strategy: Any
    clock: Clock
    retry_config: RetryConfig
    _given: bool
    _use: Callable[[Any], None]
    _make_plan: Callable[[], None]
    _shown: ShownRetry | None = None
    _is_shared = False
    """Other sessions have the same strategy: setting ``max_retries`` replaces it for this one."""

    def _with_max_retries(
        self, config: RetryConfig, value: Any, strategy: RetryStrategy | None, options: dict[str, Any]
    ) -> tuple[RetryConfig, ShownRetry | None]:
        own: Any = type(self).max_retries
        if own is not vars(MaxRetries)["max_retries"]:
            allowed = (
                "no max_retries in a subclass is allowed: urllib3 would retry beneath this adapter, and multiply each "
                "of its attempts. Give max_retries or max_attempts to the constructor"
            )
            raise RetryConfigError("max_retries", own, f"class {type(self).__name__}", allowed)
        translated = translate(value)
        if translated and "max_attempts" in options:
            raise RetryConfigError("max_retries", value, "code", "only one of max_retries and max_attempts is allowed")
        if "backoff_base" in translated and options.get("backoff") is not None:
            allowed = "only one of it and a backoff_factor in max_retries is allowed"
            raise RetryConfigError("backoff", options["backoff"], "code", allowed)
        if translated and strategy is not None:
            raise _owned_by(strategy, value)
        return with_translated(config, translated), ShownRetry(value, translated) if isinstance(value, Retry) else None

    def _show_given(self, given: ShownRetry | None) -> None:
        if given is not None:
            self._show(given)

    def _show(self, shown: ShownRetry | None) -> None:
        """Let ``max_retries`` return this ``Retry``, whose changes take effect; None: one that is made on demand."""
        if shown is None:
            self.__dict__.pop("_shown", None)
        else:
            self._shown = shown
        self._make_plan()

    def _fill_retries(self, response: Response, recorder: Recorder | None = None) -> None:
        """Have the response refer to the ``Retry`` that the adapter shows, where tools look for it."""
        shown = self._shown
        if recorder is None or len(recorder.rows) < 2:
            if shown is not None and getattr(response.raw, "retries", None) is INNER_RETRY:
                response.raw.retries = shown.retry  # unused, as with HTTPAdapter
        elif getattr(response.raw, "retries", None) is not None:
            retries = response.raw.retries
            history = (*retries.history, *recorder.rows[:-1])
            number = recorder.attempts[-1].number
            response.raw.retries = retries.new(history=history) if shown is None else shown.used(number - 1, history)

    def _adopt(self, config: RetryConfig) -> None:
        """Adopt another policy. The strategy's quotas stay as they are, unless other sessions share it."""
        strategy = self._strategy
        if isinstance(strategy, StandardRetryStrategy) and not self._is_shared:
            strategy = strategy.under(config)
        else:
            from ..table import strategy_for

            strategy = strategy_for(config, self.clock)
        self.retry_config = config
        self._is_shared = False
        self._use(strategy)

    def _heed_changes(self) -> bool:
        """Translate ``max_retries`` again if it was changed in place; return True if it was."""
        shown = self._shown
        if shown is None or vars(shown.retry) == shown.seen:
            return False
        if self._given:
            raise _owned_by(self._strategy, shown.retry)
        from .translation import changed_options, translate_retry  # as above

        now = ShownRetry(shown.retry, {})  # before it is translated: a change made meanwhile is noticed later on
        now.options = translate_retry(shown.retry)
        changes = changed_options(shown.options, now.options)
        self._adopt(self.retry_config.replace_from(dict.fromkeys(changes, "max_retries"), **changes))
        self._show(now)  # only now: until then other threads translate it themselves
        return True

    def share_strategy(self) -> None:
        """Mark the strategy as shared with other sessions: setting ``max_retries`` replaces it for this one."""
        self._given, self._is_shared = False, True

    def _state_to_copy(self) -> dict[str, Any]:
        self._heed_changes()
        state: dict[str, Any] = {"_is_shared": self._is_shared}
        if self._shown is not None:
            state["_shown"] = ShownRetry(copy.copy(self._shown.retry), self._shown.options)
        return state

    def _options_as_shown(self) -> ShownRetry:
        from .translation import TRANSLATED, OptionsRetry  # as above

        strategy: Any = self._strategy
        is_ours = isinstance(strategy, StandardRetryStrategy)
        config: RetryConfig = strategy.config if is_ours else self.retry_config
        options = {name: getattr(self.retry_config if name in ADAPTER_OPTIONS else config, name) for name in TRANSLATED}
        most = config.most_attempts if is_ours else most_attempts(strategy) or UNLIMITED
        options["max_attempts"] = most if self.retry_config.enabled else 1
        own: Any = config.backoffs[0]
        factor = getattr(getattr(own, "inner", own), "backoff_scale_value", config.numbers.initial_backoff)
        return ShownRetry(OptionsRetry.saying(options, factor=factor), options)

    @property
    def max_retries(self) -> Retry:
        """The adapter's own ``Retry``: the one it was given, or one that expresses the options in force.

        A change in place takes effect with the next send. An assigned value is translated, as in the constructor; on
        an adapter that :func:`install` made, it gives this session a policy of its own. urllib3 itself always gets
        another one, which retries nothing.

        :raises RetryConfigError: on assignment, if the value cannot be translated, or beside a given ``strategy``.
        """
        if this_thread.sender is self:
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
            raise _owned_by(self._strategy, value)
        options = translate(value)
        config = with_translated(self.retry_config, options)
        self.__dict__.setdefault("_original", (self._strategy, self.retry_config, self._shown, self._is_shared))
        self._adopt(config)
        self._show(ShownRetry(value, options) if isinstance(value, Retry) else self._options_as_shown())

    @max_retries.deleter
    def max_retries(self) -> None:
        # unittest.mock deletes it after a patch: this restores the policy from before the assignment.
        if "_original" in self.__dict__:
            strategy, config, shown, self._is_shared = self.__dict__.pop("_original")
            self.retry_config = config
            self._use(strategy)
            self._show(shown)

    def _forget_shown(self) -> None:
        self._is_shared = False
        self.__dict__.pop("_original", None)
        self._show(None)


def _owned_by(strategy: RetryStrategy, value: Any) -> RetryConfigError:
    return RetryConfigError(
        "max_retries",
        value,
        "code",
        f"the policy belongs to the strategy that this adapter was given, strategy={strategy!r}: only one of the two "
        "is allowed. Give the strategy other options, or give the adapter config= in its place",
    )
