"""Every session of the process gets the adapter, also in other people's code (contract 10.5)."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import requests
    from requests.adapters import BaseAdapter
    from typing_extensions import Unpack

    from ...adapter import RetryAdapter
    from ...config.retry_config import RetryConfig, RetryOptions
    from ...core.strategy import RetryStrategy
    from ...errors import RetryConfigError
else:  # pragma: no branch - for typing.get_type_hints; what a policy needs is imported by install()
    from ...config.retry_config import RetryConfig, RetryOptions
    from ...errors import RetryConfigError
    from ...typing_names import Unpack

    BaseAdapter = RetryAdapter = RetryStrategy = Any


class Told(NamedTuple):
    """The part of ``run`` that is told what an installation meets.

    :param refuse: is given the error of a bad policy.
    :param at_once: is given a sentence as soon as an adapter was left alone and none has retries.
    :param is_dry: nothing is changed, and each adapter told.
    """

    refuse: Callable[[RetryConfigError], None]
    at_once: Callable[[str], None]
    is_dry: bool = False


class Installation:
    """The result of :func:`install`: the policy, and the strategy that all sessions share."""

    def __init__(self, adapter: RetryAdapter, mounted: str, told: Told | None = None) -> None:
        from .combined import Reached

        adapter.share_strategy()
        self.config: RetryConfig = adapter.retry_config
        self.strategy: RetryStrategy = adapter.strategy
        self.mounted: str = mounted
        self._adapter = adapter
        self._left_alone: dict[str, object] = {}
        self._reached = Reached()
        self._told = told

    @property
    def left_alone(self) -> tuple[str, ...]:
        """A sentence for each class of adapter that was left alone; the log says each once, at ``INFO``."""
        return tuple(self._left_alone)

    def equip(self, session: requests.Session) -> None:
        """Replace each plain ``HTTPAdapter`` of a new session, and from now on those that are mounted on it."""
        from requests.adapters import HTTPAdapter  # already imported by the session's maker

        from .combined import Kind

        own: list[Any] = []
        kind = Kind("an adapter of requests' own", policy=self.config, where=self._where())
        vars(session)[MARK] = own, kind
        for prefix, adapter in session.adapters.items():
            if type(adapter) is not HTTPAdapter:
                self.reach(adapter)
            elif self.is_dry:
                own.append(adapter)
            else:
                own[:] = own or [self._take_over(adapter)]
                session.adapters[prefix] = own[0]
        if own:
            with _lock:
                self._reached.add(kind)

    def _where(self) -> str:
        """Return what a dry run says of the place where a session is made or an adapter mounted."""
        from .combined import calling_line

        return f", {calling_line()}" if self.is_dry else ""

    @property
    def is_dry(self) -> bool:
        """Nothing is changed: what would be is only told."""
        return self._told is not None and self._told.is_dry

    def reach(self, adapter: Any) -> None:
        """Make an adapter retry that somebody mounts, or say why it is left alone."""
        from ...checks import is_first
        from ...errors import RetryConfigError, RetryConfigWarning
        from ...observing.log import log_left_alone
        from .combined import NEVER, Kind, left_alone

        if not self.config.enabled:
            return
        name = f"{_owner(adapter)}'s {type(adapter).__qualname__}"
        if isinstance(adapter, type(self._adapter)):
            with _lock:
                self._reached.add(Kind(name, policy=adapter.retry_config, where=self._where()))
            return
        kind = left_alone(adapter, name, type(self._adapter), self.mounted)
        if kind is None:
            try:
                said, policy = self._reach(adapter)
                kind = Kind(name + said, policy=policy)
            except (RetryConfigError, RetryConfigWarning, TypeError) as refusal:
                remedy = NEVER if isinstance(refusal, TypeError) else "replace"
                kind = Kind(f"{name}, which cannot be combined: {refusal}", remedy)
        with _lock:
            self._reached.add(kind._replace(where=self._where()))
        if kind.remedy is not None and is_first(self._left_alone, kind.sentence):
            log_left_alone(kind.sentence)

    def _reach(self, adapter: Any) -> tuple[str, RetryConfig]:
        """Make an adapter retry; return what is to be said of its own retries, and its policy."""
        from ..urllib3_retry import translate, with_translated
        from .combined import class_of_both, display_retries, own_names, retries_nothing

        retries = adapter.max_retries
        said = ", beneath its own send" if "send" in own_names(adapter) else ""
        if not retries_nothing(retries):
            said = f" with {display_retries(retries)}{', which is ignored' if self.mounted == 'replace' else ''}{said}"
        own = None if self.mounted == "replace" or retries_nothing(retries) else retries
        if self.is_dry:
            theirs: Any = type(adapter)
            ours: Any = type(self._adapter)
            class_of_both(theirs, ours)  # or TypeError
            return said, self.config if own is None else with_translated(self.config, translate(own))
        return said, self._take_over(adapter, own).retry_config

    def look_at(self, session: requests.Session) -> None:
        """After an adapter was mounted: notice that it took the place of the session's own, and that none retries."""
        own, kind = vars(session)[MARK]
        if own and not any(each is adapter for adapter in session.adapters.values() for each in own):
            own.clear()
            with _lock:
                self._reached.add(kind, -1)
        if self._told is not None and not self.is_dry and self._left_alone and not self._reached.count(None):
            first = next(iter(self._left_alone))
            self._told.at_once(f"nothing in this program has retries so far; left alone: {first}")
            self._told = None

    def report(self, *, each: bool = False) -> list[str]:
        """Return a line that tells how many adapters were reached, and one of what their retries did.

        :param each: also a line for each kind of adapters.
        """
        from ...observing.summary import retry_summary

        if not self.config.enabled:
            return [f"retries are switched off: {self.config.shown('enabled')}"]
        with _lock:
            line = self._reached.line("would have" if self.is_dry else "had")
            did = retry_summary()
            lines = [line, str(did)] if did.operations else [line]
            return [*lines, *(self._reached.lines() if each else ())] if line else []

    def _take_over(self, adapter: Any, own: Any = None) -> Any:
        from .combined import take_over

        state = {**self._adapter._state_to_copy(), "_addresses": self._adapter.addresses}
        return take_over(adapter, type(self._adapter), state, own)

    def __repr__(self) -> str:
        left = f"; left alone: {'; '.join(self._left_alone)}" if self._left_alone else ""
        return f"<{type(self).__name__} {self.strategy!r}{left}>"


def _owner(adapter: BaseAdapter) -> str:
    package = type(adapter).__module__.partition(".")[0]
    return "the program" if package == "__main__" else package


_lock = threading.RLock()
_current: Installation | None = None
_later: Told | None = None
"""Told of a bad environment, which the first session reads; None: there is nothing to read."""
_wrapped: dict[str, tuple[Any, Any]] = {}
"""Each method of ``Session`` that is replaced while something is installed: the original one, and ours."""

MARK = "_retries_are_installed"
"""The attribute of a session that was made while something was installed."""


def install(
    *,
    config: RetryConfig | None = None,
    strategy: RetryStrategy | None = None,
    defaults: RetryConfig | None = None,
    mounted: str | None = None,
    **options: Unpack[RetryOptions],
) -> Installation:
    """Give every ``requests.Session`` made from now on the adapter, also in other people's code.

    That includes subclasses, ``requests.get`` and the like. All sessions share one strategy, and so its quota. Existing
    sessions stay as they are. Another call changes the policy for later sessions; without arguments it changes nothing.

    An adapter that somebody mounts on such a session, as SDKs do, is made to retry if ``mounted`` says so. It stays the
    same object, with its pools, its TLS context and its attributes; its class inherits from its own class and from
    :class:`RetryAdapter`. ``Installation.left_alone`` and the log name those that were left alone.

    :param config: the policy; without it, and without options, that of the environment.
    :param strategy: any retry strategy, in place of ``mode``.
    :param defaults: options that the environment's values, and options given here, override.
    :param mounted: ``"plain"``: an adapter that retries nothing by itself gets this policy; ``"all"``: also, the
        urllib3 ``Retry`` of one that retries is translated, as its own policy; ``"replace"``: every adapter gets this
        policy, its ``Retry`` is ignored, and a ``send`` of its own stays above it; ``"none"``: adapters that others
        mount stay as they are. None: the value of ``SMITHY_RETRY_MOUNTED``, or ``"none"``.
    :param options: any option of :class:`RetryConfig`.
    :returns: the installation in force.
    :raises RetryConfigError: for a bad option.
    """
    global _current, _later
    with _lock:
        given = config, strategy, defaults, mounted
        if _current is not None and given == (None, None, None, None) and not options:
            return _current
        _current, _later = _prepare(mounted, config=config, strategy=strategy, defaults=defaults, **options), None
        _wrap()
        return _current


def install_later(told: Told) -> None:
    """Install the environment's policy, but read the environment, and import the rest, with the first session."""
    global _later
    with _lock:
        if _current is None:
            _later = _later or told
        _wrap()


def _in_force() -> Installation | None:
    """Return what is installed; the first session has it made that waits for one."""
    global _current, _later
    if _later is None:
        return _current
    from ...errors import RetryConfigError

    with _lock:
        if _later is not None:  # another thread may have been first
            try:
                # Nobody can mount an adapter in a program as it is.
                _current = _prepare(None, "plain", _later)
            except RetryConfigError as refusal:
                _later.refuse(refusal)
            else:
                _later = None
        return _current


def current() -> Installation | None:
    return _current


def uninstall() -> None:
    """Undo :func:`install` for sessions made from now on; do nothing if it is not in force.

    Sessions made in between keep their adapters.
    """
    global _current, _later
    with _lock:
        _current = _later = None
        for name in list(_wrapped):
            if is_wrapped(name):
                setattr(_sessions(), name, _wrapped.pop(name)[0])


def is_wrapped(name: str = "__init__") -> bool:
    """Return True if a method of ``Session`` is ours; under another library's wrapper, ours stays and does nothing."""
    return name in _wrapped and getattr(_sessions(), name) is _wrapped[name][1]


def _sessions() -> type[requests.Session]:
    # Importing the package does not import requests: a program may have to patch for gevent first.
    import requests

    return requests.Session


def _renew_lock() -> None:  # pragma: no cover - runs in the child, whose end by os._exit leaves no measurement
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # pragma: no branch - absent only where there is no fork
    os.register_at_fork(after_in_child=_renew_lock)  # a child inherits no lock that another thread held


def _prepare(mounted: str | None, default: str = "none", told: Told | None = None, **policy: Any) -> Installation:
    from ...adapter import RetryAdapter  # keeps the import of the package cheap
    from ...config.sources import mounted_of

    adapter = RetryAdapter(**policy)
    config = adapter.retry_config
    environ = os.environ if config.trust_env and config.enabled else {}
    return Installation(adapter, mounted_of(mounted, environ, default=default), told)


def _wrap() -> None:
    sessions = _sessions()
    for name, ours in (("__init__", _init), ("mount", _mount)):
        if not is_wrapped(name):
            plain = getattr(sessions, name)
            _wrapped[name] = plain, ours(plain)
            setattr(sessions, name, _wrapped[name][1])


def _init(plain: Any) -> Any:
    @functools.wraps(plain)
    def __init__(self: requests.Session, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        installation = _in_force()
        if installation is not None:
            installation.equip(self)

    return __init__


def _mount(plain: Any) -> Any:
    @functools.wraps(plain)
    def mount(self: requests.Session, prefix: str, adapter: BaseAdapter) -> None:
        installation = _current
        if MARK not in vars(self) or installation is None:
            plain(self, prefix, adapter)
            return
        if not any(adapter is each for each in self.adapters.values()):
            installation.reach(adapter)
        plain(self, prefix, adapter)
        installation.look_at(self)

    return mount
