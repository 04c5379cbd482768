"""The adapter in every session of the process (contract 10.5): :func:`install` and :func:`uninstall`.

``requests.Session.__init__`` is wrapped: what it mounts as plain ``HTTPAdapter`` is replaced as soon as it has run. A
subclass that mounts an adapter of its own does so afterwards, and keeps it.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .adapter import RetryAdapter
    from .config import RetryConfig, RetryOptions
    from .interfaces import RetryStrategy


class Installation:
    """What one :func:`install` set up: the policy, and the strategy that all sessions share.

    :param make: makes an adapter for one session.
    :param adapter: one of them; its strategy is the shared one.
    """

    def __init__(self, make: Callable[[], RetryAdapter], adapter: RetryAdapter) -> None:
        self._make = make
        self.config: RetryConfig = adapter.retry_config
        self.strategy: RetryStrategy = adapter.strategy

    def equip(self, session: requests.Session) -> None:
        """Put an adapter wherever a session has a plain ``HTTPAdapter``."""
        plain = [prefix for prefix, adapter in session.adapters.items() if type(adapter) is HTTPAdapter]
        if plain:
            adapter = self._make()
            for prefix in plain:
                session.adapters[prefix] = adapter

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.strategy!r}>"


_lock = threading.RLock()
_current: Installation | None = None
_plain: Any = None
"""What was there before; None while nothing of ours is."""
_wrapper: Any = None


def install(
    *, config: RetryConfig | None = None, strategy: RetryStrategy | None = None, **options: Unpack[RetryOptions]
) -> Installation:
    """Give every ``requests.Session`` made from now on the adapter, also those of other people's code.

    That covers subclasses, ``requests.get`` and its like. All sessions share one strategy, so that they share its
    quota. Sessions that are there already, and adapters that somebody mounts, are left alone. Call it again to change
    the policy for later sessions; called again without arguments it changes nothing.

    :param config: the policy; without it, and without options, that of the environment.
    :param strategy: any retry strategy, in place of ``mode``.
    :param options: any option of :class:`RetryConfig`.
    :returns: what is in force.
    :raises RetryConfigError: for a bad option.
    """
    global _current
    with _lock:
        if _current is not None and config is None and strategy is None and not options:
            return _current
        _current = _prepare(config, strategy, dict(options))
        if not is_wrapped():
            _wrap()
        return _current


def uninstall() -> None:
    """Take :func:`install` back: sessions made from now on are as they were before. Does nothing if it is not in force.

    Sessions made in between keep their adapter.
    """
    global _current, _plain, _wrapper
    with _lock:
        _current = None
        if is_wrapped():
            requests.Session.__init__ = _plain  # type: ignore[method-assign]
            _plain = _wrapper = None


def is_wrapped() -> bool:
    """Whether ``Session.__init__`` is ours. If others wrapped ours in turn, ours stays beneath and does nothing."""
    return requests.Session.__init__ is _wrapper


def _renew_lock() -> None:  # pragma: no cover - runs in the child, whose end by os._exit leaves no measurement
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # pragma: no branch - absent only where there is no fork
    os.register_at_fork(after_in_child=_renew_lock)  # a child inherits no lock that another thread held


def _prepare(config: RetryConfig | None, strategy: RetryStrategy | None, options: dict[str, Any]) -> Installation:
    from .adapter import RetryAdapter  # importing the package costs little this way

    first = RetryAdapter(config=config, strategy=strategy, **options)
    if strategy is None:
        # The strategy has the whole policy, and what the environment said when it was made.
        make = functools.partial(RetryAdapter, strategy=first.strategy)
    else:
        make = functools.partial(RetryAdapter, config=config, strategy=strategy, **options)
    return Installation(make, first)


def _wrap() -> None:
    global _plain, _wrapper
    plain = requests.Session.__init__

    @functools.wraps(plain)
    def __init__(self: requests.Session, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        installation = _current
        if installation is not None:
            installation.equip(self)

    _plain, _wrapper = plain, __init__
    requests.Session.__init__ = __init__  # type: ignore[method-assign]
