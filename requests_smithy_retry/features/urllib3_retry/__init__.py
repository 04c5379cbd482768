"""``max_retries`` of an adapter (contract 2.9): a urllib3 ``Retry`` is translated, and reading returns one.

A ``Retry`` is never run beneath our own retries. It is read once, when it is given or assigned.
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
from ...config.beside import config_of
from ...config.options import UNSET
from ...config.retry_config import ADAPTER_OPTIONS, RetryConfig
from ...config.retry_options import current_options
from ...core.strategy import RetryStrategy, StandardRetryStrategy
from ...core.wait_queue import UNLIMITED
from ...errors import RetryConfigError
from ...observing.recorder import Recorder
from ...wire.state import this_thread

Translated = dict[str, Any]


class FixedRetry(Retry):
    """The settings of a ``Retry``, as they were when it was given, and the options that they mean here. It never
    changes.

    :param retry: its settings are shown, and ``new`` makes another one of its kind.
    :param options: the options that assigning this object sets.
    """

    stands_for: dict[str, Any]
    _given: Retry

    def __init__(self, retry: Retry, options: dict[str, Any]) -> None:
        own = {"_given": copy.copy(retry), "stands_for": options}
        vars(self).update(settings_of(retry), **own)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{name} cannot be set here, where it would change nothing. Assign another Retry to the adapter: "
            f"adapter.max_retries = adapter.max_retries.new({name}=...)"
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def new(self, **changes: Any) -> Any:
        """Return an ordinary ``Retry`` with these changes, to be assigned."""
        return self._given.new(**changes)

    def used(self, retries: int, history: tuple[Any, ...]) -> FixedRetry:
        """Return one with what is left after some retries."""
        left, total = copy.copy(self), self.total
        vars(left).update(total=max(total - retries, 0) if total else total, history=history)
        return left


def settings_of(retry: Any) -> dict[str, Any]:
    """Return the settings of a ``Retry`` as they are now; none for another value."""
    return {name: _fixed(value) for name, value in vars(retry).items()} if isinstance(retry, Retry) else {}


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else frozenset(value) if isinstance(value, (set, dict)) else value


INNER_RETRY: FixedRetry = FixedRetry(Retry(0, read=False), {"max_attempts": 1})
"""Given to urllib3 beneath a ``RetryAdapter``: it retries nothing. Each response refers to it, or to its adapter's."""


class QuietRetry(Retry):
    """Wraps a program's ``Retry``: reads and sets its settings. Retries nothing beneath a ``RetryAdapter``.

    :param given: the program's ``max_retries``.
    """

    given: Retry
    """The program's own."""

    def __init__(self, given: Any) -> None:
        vars(self)["given"] = Retry.from_int(given)

    def __getattr__(self, name: str) -> Any:
        if name == "given" or name.startswith("__"):  # not yet: it is being copied
            raise AttributeError(name)
        return getattr(self.given, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.given, name, value)

    def new(self, **changes: Any) -> Any:
        """Return an ordinary ``Retry`` with these changes."""
        return self.given.new(**changes)

    def is_retry(self, *args: Any, **kwargs: Any) -> bool:
        """Return False beneath a ``RetryAdapter``."""
        return this_thread.sender is None and self.given.is_retry(*args, **kwargs)

    def increment(self, *args: Any, **kwargs: Any) -> Any:
        """Raise beneath a ``RetryAdapter``, as if no retries were left."""
        own = self.given if this_thread.sender is None else INNER_RETRY.new()
        return own.increment(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.given)


def given_retry(max_retries: Any) -> Any:
    """Return the program's own ``max_retries``, even if another one stands in for it."""
    return max_retries.given if isinstance(max_retries, QuietRetry) else max_retries


def translate(max_retries: Any, *, warns: bool = True) -> Translated:
    """Return the options that a ``max_retries`` asks for: a number of retries, None or a urllib3 ``Retry``.

    :param warns: False if its adapter is not ours: requests ignored such settings already.
    """
    max_retries = given_retry(max_retries)
    if max_retries is UNSET:
        return {}
    if isinstance(max_retries, FixedRetry):
        return dict(max_retries.stands_for)
    if max_retries is None:
        return {"max_attempts": translate(Retry.DEFAULT)["max_attempts"]}
    if isinstance(max_retries, Retry):
        from .translation import translate_retry  # few programs give one

        return translate_retry(max_retries, warns=warns)
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


def with_translated(config: RetryConfig, translated: Translated) -> RetryConfig:
    """Return a config with the options of a ``max_retries`` in place of those of an earlier one."""
    if not translated:
        return config
    return config.without("max_retries").replace_from(dict.fromkeys(translated, "max_retries"), **translated)


def beneath(value: Any, config: RetryConfig) -> Retry:
    """Return the ``Retry`` for urllib3: with retries switched off, that of an ``HTTPAdapter`` with this
    ``max_retries``.
    """
    is_ours = config.enabled or value is UNSET or value in (0, False)
    return INNER_RETRY if is_ours else Retry.from_int(value)


def shown_for(value: Any, translated: Translated) -> FixedRetry | None:
    """Return the ``Retry`` to show for this value; None: one with the options in force is made on demand."""
    value = given_retry(value)
    return FixedRetry(value, translated) if isinstance(value, Retry) else None


class MaxRetries(HTTPAdapter):
    """The ``max_retries`` of the adapter."""

    clock: Clock
    retry_config: RetryConfig
    _strategy: Any
    _given: bool
    _use: Callable[[Any], None]
    _shown: FixedRetry | None = None
    """What ``max_retries`` reads as; None: it was not read yet."""
    _beneath: Retry = INNER_RETRY
    """The ``Retry`` that urllib3 gets."""
    _is_shared = False
    """Other sessions have the same strategy: setting ``max_retries`` replaces it for this one."""

    def _with_max_retries(
        self, config: RetryConfig, value: Any, strategy: RetryStrategy | None, options: dict[str, Any]
    ) -> tuple[RetryConfig, FixedRetry | None]:
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
        return with_translated(config, translated), shown_for(value, translated)

    def _fill_retries(self, response: Response, recorder: Recorder | None = None) -> None:
        """Set the ``retries`` of the raw response to the ``Retry`` that the adapter shows."""
        shown = self._shown
        if recorder is None or len(recorder.rows) < 2:
            if shown is not None and getattr(response.raw, "retries", None) is INNER_RETRY:
                response.raw.retries = shown  # unused, as with HTTPAdapter
        elif getattr(response.raw, "retries", None) is not None:
            history = (*response.raw.retries.history, *recorder.rows[:-1])
            used = recorder.attempts[-1].number - 1
            response.raw.retries = (shown or INNER_RETRY).used(used, history)

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

    def share_strategy(self) -> None:
        """Mark the strategy as shared with other sessions: setting ``max_retries`` replaces it for this one."""
        self._given, self._is_shared = False, True

    def _state_to_copy(self) -> dict[str, Any]:
        return {"_is_shared": self._is_shared, "_shown": self._shown, "_beneath": self._beneath}

    def _options_as_shown(self) -> FixedRetry:
        from .translation import TRANSLATED, retry_saying  # as above

        strategy: Any = self._strategy
        config = config_of(strategy) or self.retry_config
        options = {name: getattr(self.retry_config if name in ADAPTER_OPTIONS else config, name) for name in TRANSLATED}
        most = most_attempts(strategy) or config.most_attempts
        if most is None and config_of(strategy) is None:
            most = UNLIMITED
        options["max_attempts"] = most if self.retry_config.enabled else min(1 + self._beneath.total, UNLIMITED)  # type: ignore[operator]
        own: Any = config.backoffs[0]
        factor = getattr(getattr(own, "inner", own), "backoff_scale_value", config.numbers.initial_backoff)
        return FixedRetry(retry_saying(options, factor=factor), options)

    @property
    def max_retries(self) -> Retry:
        """A ``Retry`` with the settings that were given, or with the options in force. It cannot be changed: assign
        another one, ``adapter.max_retries = adapter.max_retries.new(total=5)``.

        An assigned value is translated, as in the constructor. A value that was read here can be assigned again.
        urllib3 itself gets another one, which retries nothing, unless retries are switched off.

        :raises RetryConfigError: on assignment, if the value cannot be translated, or beside a given ``strategy``.
        """
        if this_thread.sender is self:
            return INNER_RETRY if current_options.get().enabled is False else self._beneath
        shown = self._shown
        if shown is None:
            if "_strategy" not in self.__dict__:  # a subclass may have set it before it called our constructor
                if "max_retries" not in self.__dict__:
                    raise AttributeError(f"{type(self).__name__!r} object has no attribute 'max_retries'")
                early: Retry = self.__dict__["max_retries"]
                return early
            shown = self._shown = self._options_as_shown()
        return shown

    @max_retries.setter
    def max_retries(self, value: Any) -> None:
        # HTTPAdapter's constructor assigns its own default before anything else.
        if "proxy_manager" not in self.__dict__:
            if "_strategy" not in self.__dict__:
                self.__dict__["max_retries"] = value
            return
        if self._given:
            raise _owned_by(self._strategy, value)
        translated = translate(value)
        before = self._strategy, self.retry_config, self._shown, self._is_shared, self._beneath
        self.__dict__.setdefault("_original", before)
        self._adopt(with_translated(self.retry_config, translated))
        self._shown, self._beneath = shown_for(value, translated), beneath(value, self.retry_config)

    @max_retries.deleter
    def max_retries(self) -> None:
        # unittest.mock deletes it after a patch: this restores the policy from before the assignment.
        if "_original" in self.__dict__:
            strategy, config, self._shown, self._is_shared, self._beneath = self.__dict__.pop("_original")
            self.retry_config = config
            self._use(strategy)

    def _forget_shown(self) -> None:
        self._is_shared, self._shown = False, None
        self.__dict__.pop("_original", None)


def _owned_by(strategy: RetryStrategy, value: Any) -> RetryConfigError:
    return RetryConfigError(
        "max_retries",
        value,
        "code",
        f"the policy belongs to the strategy that this adapter was given, strategy={strategy!r}: only one of the two "
        "is allowed. Give the strategy other options, or give the adapter config= in its place",
    )
