"""Mounting the adapter on one session (``mount``), or on every session of the process (``install``)."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import requests
    from typing_extensions import Unpack

    from .adapter import RetryAdapter
    from .config.retry_config import RetryConfig, RetryOptions
    from .errors import RetryConfigError
    from .smithy import SmithyEndpoint
    from .strategies.protocol import RetryStrategy


S = TypeVar("S", bound="requests.Session")


def mount(
    session: S,
    *,
    at: str | None = None,
    config: RetryConfig | None = None,
    strategy: RetryStrategy | None = None,
    **options: Unpack[RetryOptions],
) -> S:
    """Mount one shared :class:`RetryAdapter` on ``http://`` and ``https://``, and return the session.

    >>> session = mount(requests.Session(), max_attempts=5)

    An adapter does not know where it is mounted, so a Smithy model is bound here to its URL:

    >>> from requests_smithy_retry import SmithyModel
    >>> model = SmithyModel.from_dict({"smithy": "2.0", "shapes": {}})
    >>> session = mount(requests.Session(), at="https://api.example.com", models=[model])

    :param session: any ``requests`` session.
    :param at: the URL to mount at, in place of ``http://`` and ``https://``. Models in ``models`` without an endpoint
        of their own get this one. (requests compares it with the URL as a prefix; a model takes it as an endpoint, and
        so never speaks for ``https://api.example.com.elsewhere.net``.)
    :param config: the policy, in place of options.
    :param strategy: any retry strategy, in place of ``mode``.
    :param options: any option of :class:`RetryConfig`.
    :raises RetryConfigError: for a bad option.
    :raises ValueError: if there is a model to bind, and ``at`` is not an endpoint.
    """
    from .adapter import RetryAdapter

    if at is not None and "models" in options:
        options["models"] = [_bound(item, at) for item in options["models"]]
    adapter = RetryAdapter(config=config, strategy=strategy, **options)
    for prefix in ("http://", "https://") if at is None else (at,):
        session.mount(prefix, adapter)
    return session


def _bound(model: Any, url: str) -> SmithyEndpoint:
    from .smithy import SmithyModel

    return model.for_endpoint(url) if isinstance(model, SmithyModel) else model


class Installation:
    """The result of :func:`install`: the policy, and the strategy that all sessions share.

    :param make: makes an adapter for one session.
    :param adapter: the first adapter, which has the shared strategy.
    """

    def __init__(self, make: Callable[[], RetryAdapter], adapter: RetryAdapter) -> None:
        self._make = make
        self.config: RetryConfig = adapter.retry_config
        self.strategy: RetryStrategy = adapter.strategy
        self._addresses = adapter.addresses

    def equip(self, session: requests.Session) -> None:
        """Replace each plain ``HTTPAdapter`` of a session."""
        from requests.adapters import HTTPAdapter  # already imported by the session's maker

        plain = [prefix for prefix, adapter in session.adapters.items() if type(adapter) is HTTPAdapter]
        if plain:
            adapter = self._make()
            adapter.share_strategy()
            adapter.share_addresses(self._addresses)
            for prefix in plain:
                session.adapters[prefix] = adapter

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.strategy!r}>"


class _Later:
    """An installation that reads the environment when the first session is made."""

    def __init__(self, refuse: Callable[[RetryConfigError], None]) -> None:
        self._refuse = refuse

    def equip(self, session: requests.Session) -> None:
        from .errors import RetryConfigError

        try:
            installation = self._settled()
        except RetryConfigError as refusal:
            self._refuse(refusal)
        else:
            if installation is not None:
                installation.equip(session)

    def _settled(self) -> Installation | _Later | None:
        global _current
        with _lock:
            if _current is self:
                _current = _prepare(None, None, {})
            return _current  # another thread may have replaced it, or uninstalled it


_lock = threading.RLock()
_current: Installation | _Later | None = None
_plain: Any = None
"""The original ``Session.__init__``; None while nothing is installed."""
_wrapper: Any = None


def install(
    *, config: RetryConfig | None = None, strategy: RetryStrategy | None = None, **options: Unpack[RetryOptions]
) -> Installation:
    """Give every ``requests.Session`` made from now on the adapter, also in other people's code.

    That includes subclasses, ``requests.get`` and the like. All sessions share one strategy, and so its quota. Existing
    sessions, and adapters mounted by others, stay as they are. Another call changes the policy for later sessions;
    without arguments it changes nothing.

    :param config: the policy; without it, and without options, that of the environment.
    :param strategy: any retry strategy, in place of ``mode``.
    :param options: any option of :class:`RetryConfig`.
    :returns: the installation in force.
    :raises RetryConfigError: for a bad option.
    """
    global _current
    with _lock:
        if isinstance(_current, Installation) and config is None and strategy is None and not options:
            return _current
        _current = installation = _prepare(config, strategy, dict(options))
        if not is_wrapped():
            _wrap()
        return installation


def install_later(refuse: Callable[[RetryConfigError], None]) -> None:
    """Install the environment's policy, but read the environment when the first session is made.

    It can be called while modules of this package are being imported.
    """
    global _current
    with _lock:
        if _current is None:
            _current = _Later(refuse)
        if not is_wrapped():
            _wrap()


def uninstall() -> None:
    """Undo :func:`install` for sessions made from now on; do nothing if it is not in force.

    Sessions made in between keep their adapter.
    """
    global _current, _plain, _wrapper
    with _lock:
        _current = None
        if is_wrapped():
            _sessions().__init__ = _plain  # type: ignore[method-assign]
            _plain = _wrapper = None


def is_wrapped() -> bool:
    """Return True if ``Session.__init__`` is ours; under another library's wrapper, ours stays and does nothing."""
    return _sessions().__init__ is _wrapper


def _sessions() -> type[requests.Session]:
    # Importing the package does not import requests: a program may have to patch for gevent first.
    import requests

    return requests.Session


def _renew_lock() -> None:  # pragma: no cover - runs in the child, whose end by os._exit leaves no measurement
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # pragma: no branch - absent only where there is no fork
    os.register_at_fork(after_in_child=_renew_lock)  # a child inherits no lock that another thread held


def _prepare(config: RetryConfig | None, strategy: RetryStrategy | None, options: dict[str, Any]) -> Installation:
    from .adapter import RetryAdapter  # keeps the import of the package cheap

    first = RetryAdapter(config=config, strategy=strategy, **options)
    if strategy is None:
        # The strategy has the whole policy, including the environment's part.
        make = functools.partial(RetryAdapter, strategy=first.strategy)
    else:
        make = functools.partial(RetryAdapter, config=config, strategy=strategy, **options)
    return Installation(make, first)


def _wrap() -> None:
    global _plain, _wrapper
    sessions = _sessions()
    plain = sessions.__init__

    @functools.wraps(plain)
    def __init__(self: requests.Session, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        installation = _current
        if installation is not None:
            installation.equip(self)

    _plain, _wrapper = plain, __init__
    sessions.__init__ = __init__  # type: ignore[method-assign]
