"""Every session of the process gets the adapter, also in other people's code (contract 10.5)."""

from __future__ import annotations

import functools
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .children import PROCESSES, REPORT_INTERVAL

if TYPE_CHECKING:
    import requests
    from requests.adapters import BaseAdapter
    from typing_extensions import Unpack

    from ...adapter import RetryAdapter
    from ...config.retry_config import RetryConfig, RetryOptions
    from ...core.strategy import RetryStrategy
    from ...errors import RetryConfigError
    from .counts import ProcessReport
    from .decisions import Decision
else:  # pragma: no branch - for typing.get_type_hints; what a policy needs is imported by install()
    from ...config.retry_config import RetryConfig, RetryOptions
    from ...errors import RetryConfigError
    from ...typing_names import Unpack

    ProcessReport = BaseAdapter = Decision = RetryAdapter = RetryStrategy = Any


class RunOptions(NamedTuple):
    """The options of an installation that ``run`` makes.

    :param refuse: called with the error of a bad policy.
    :param warn: called with a sentence as soon as an adapter is left alone while none has retries.
    :param is_dry: nothing is changed; each adapter is reported.
    """

    refuse: Callable[[RetryConfigError], None]
    warn: Callable[[str], None]
    is_dry: bool = False


class Installation:
    """The result of :func:`install`: the policy, and the strategy that all sessions share."""

    def __init__(self, adapter: RetryAdapter, mounted: str, run: RunOptions | None = None) -> None:
        from .counts import AdapterCounts

        adapter.share_strategy()
        self.config: RetryConfig = adapter.retry_config
        self.strategy: RetryStrategy = adapter.strategy
        self.mounted: str = mounted
        self._adapter = adapter
        self._left_alone: dict[str, object] = {}
        self._counts = AdapterCounts()
        # By identity: an adapter of others may not be hashable.
        self._alive: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._run_options = run
        self._reported_at = -math.inf  # when this process last reported to the program's own

    @property
    def left_alone(self) -> tuple[str, ...]:
        """A sentence for each class of adapter that was left alone; the log has each once, at ``INFO``."""
        return (*self._left_alone,)  # in one step, without the GIL too, which tuple() is not

    def equip(self, session: requests.Session) -> None:
        """Put our adapter around the plain one of a new session, and from now on around those mounted on it."""
        from requests.adapters import HTTPAdapter  # already imported by the session's maker

        own: list[Any] = []
        own_mounted = "all" if self.mounted == "none" else self.mounted  # that is about adapters which others mount
        vars(session)[MARK] = own
        for prefix, adapter in session.adapters.items():
            if type(adapter) is HTTPAdapter:
                own[:] = own or [self._make_around(adapter, "an adapter of requests' own", own_mounted)]
                session.adapters[prefix] = own[0]
            else:
                session.adapters[prefix] = self.adapter_to_mount(adapter)

    @property
    def is_dry(self) -> bool:
        """Nothing is changed, only reported."""
        return self._run_options is not None and self._run_options.is_dry

    def adapter_to_mount(self, adapter: Any) -> Any:
        """Return the adapter to mount: ours around the given one, or the given one if it is left alone."""
        from requests.adapters import HTTPAdapter  # as above

        from ..urllib3_retry import given_retry
        from .counts import NEVER
        from .decisions import Decision, decide

        name = f"{_owner(adapter)}'s {type(adapter).__qualname__}"
        if not self.config.enabled:
            return adapter
        if isinstance(adapter, type(self._adapter)):
            if self._alive.get(id(adapter)) is not adapter:
                self._record(None, Decision(name), adapter.retry_config)
                self._alive[id(adapter)] = adapter
            return adapter
        known = self._alive.get(id(adapter))
        if known is not None and known.theirs is adapter:
            return known
        if not isinstance(adapter, HTTPAdapter):
            return self._leave_alone(adapter, Decision(f"{name}, which is not an HTTPAdapter", NEVER))
        decision = decide(adapter, name, given_retry(getattr(adapter, "max_retries", 0)), self.mounted)
        if decision.needed is not None:
            return self._leave_alone(adapter, decision)
        around = self._make_around(adapter, name, self.mounted)
        return adapter if around.is_left_alone else around

    def _leave_alone(self, adapter: Any, decision: Decision) -> Any:
        self._record(None, decision, self.config)
        return adapter

    def _make_around(self, adapter: Any, name: str, mounted: str) -> Any:
        from .around import RetryAdapterAround

        state = {**self._adapter._state_to_copy(), "_addresses": self._adapter.addresses}
        state["counters"] = self._adapter.counters  # to the end, whatever becomes of the session
        made = RetryAdapterAround(adapter, name, mounted, state, is_dry=self.is_dry, on_decision=self._record)
        made.after_send = None if self._run_options is None else self.report_to_parent
        with _lock:
            self._alive[id(adapter)] = made
        return made

    def _record(self, around: Any, decision: Decision, policy: RetryConfig) -> None:
        """Count an adapter by a decision, which replaces the one before; log why it is left alone."""
        from ...checks import is_first
        from ...observing.log import log_left_alone
        from .counts import AdapterKind
        from .decisions import calling_line, no_longer_retried

        before: AdapterKind | None = getattr(around, "counted_as", None)
        with _lock:
            if before is not None:
                self._counts.add(before, -1)
            where = before.where if before is not None else f", {calling_line()}" if self.is_dry else ""
            kind = AdapterKind(decision.sentence, decision.needed, where=where)
            if decision.needed is None:
                kind = kind._replace(policy=policy, no_longer_retried=no_longer_retried(policy, decision.ignored))
            self._counts.add(kind)
            if around is not None:
                around.counted_as = kind
        if decision.needed is not None and is_first(self._left_alone, decision.sentence):
            log_left_alone(decision.sentence)
        self.report_to_parent(True)

    def after_mount(self, session: requests.Session) -> None:
        """After a mount, uncount the session's own adapter if it was replaced, and warn if none retries."""
        own = vars(session)[MARK]
        with _lock:
            if own and not any(each is own[0] for each in session.adapters.values()):
                gone = own.pop()
                gone.on_decision = None
                self._counts.add(gone.counted_as, -1)
            run, has_retries = self._run_options, self._counts.count(None)
        if run is not None and self._left_alone and not (has_retries or run.is_dry or PROCESSES.is_child):
            self._run_options = None
            run.warn(f"nothing in this program has retries so far; left alone: {next(iter(self._left_alone))}")

    def report(self, *, each: bool = False, others: Iterable[ProcessReport] = ()) -> list[str]:
        """Return a line that counts the adapters with retries, and one about what their retries did.

        :param each: also a line for each kind of adapters.
        :param others: the reports of the processes that this one started.
        """
        from .counts import report

        if not self.config.enabled:
            return [f"retries are switched off: {self.config.shown('enabled')}"]
        return report([self._report_of_process(), *others], "would have" if self.is_dry else "had", each=each)

    def _report_of_process(self) -> ProcessReport:
        from ...observing.summary import summary_of
        from .counts import ProcessReport

        # A list of references is made in one step: other threads may mount adapters meanwhile.
        alive = [adapter for each in self._alive.valuerefs() if (adapter := each()) is not None]
        for adapter in alive:
            if hasattr(adapter, "theirs"):
                adapter.adopt_changes()  # so that it is counted by the latest decision
        with _lock:
            return ProcessReport(self._counts.as_data(), summary_of([self._adapter, *alive])._replace(hosts={}))

    def report_to_parent(self, is_first_try: bool = False) -> None:
        """Report the adapters to the process that started this one; first-try successes are reported later."""
        now = self._adapter.clock.now()
        if not PROCESSES.is_child or (is_first_try and now - self._reported_at < REPORT_INTERVAL):
            return
        if self._reported_at == -math.inf:
            PROCESSES.call_at_end(self.report_to_parent)
        self._reported_at = now
        PROCESSES.write_report(self._report_of_process())

    def restart_counts(self) -> None:
        """Count from 0, in a forked process."""
        from .counts import AdapterCounts

        self._counts, self._reported_at = AdapterCounts(), -math.inf
        for adapter in [self._adapter, *self._alive.values()]:
            adapter.counters.forget()
            if hasattr(adapter, "theirs"):
                adapter.counted_as = None

    def __repr__(self) -> str:
        left = f"; left alone: {'; '.join(self._left_alone)}" if self._left_alone else ""
        return f"<{type(self).__name__} {self.strategy!r}{left}>"


def _owner(adapter: BaseAdapter) -> str:
    package = type(adapter).__module__.partition(".")[0]
    return "the program" if package == "__main__" else package


_lock = threading.RLock()
_current: Installation | None = None
_pending: RunOptions | None = None
"""The options for the first session to install the environment's policy; None: it installs nothing."""
_wrapped: dict[str, tuple[Any, Any]] = {}
"""Each method of ``Session`` that is replaced while something is installed: the original one, and ours."""

MARK = "_retries_are_installed"
"""The attribute of a session that was made while something was installed, with its own adapter."""


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

    An adapter that somebody mounts on such a session, as SDKs do, is made to retry if ``mounted`` says so: a
    :class:`RetryAdapter` around it takes its place, and theirs sends each attempt, by its pools and its TLS context.
    What the program assigns to its ``max_retries`` later has the same effect as before mounting.
    ``Installation.left_alone`` and the log name those that were left alone.

    :param config: the policy; without it, and without options, that of the environment.
    :param strategy: any retry strategy, in place of ``mode``.
    :param defaults: options that the environment's values, and options given here, override.
    :param mounted: ``"plain"``: an adapter that retries nothing by itself gets this policy; ``"all"``: also, the
        urllib3 ``Retry`` of one that retries is translated, as its own policy; ``"replace"``: every adapter gets this
        policy, its ``Retry`` is ignored, and a ``send`` of its own sends each attempt; ``"none"``: adapters that others
        mount stay as they are. None: the value of ``SMITHY_RETRY_MOUNTED``, or ``"none"``.
    :param options: any option of :class:`RetryConfig`.
    :returns: the installation in force.
    :raises RetryConfigError: for a bad option.
    """
    global _current, _pending
    with _lock:
        given = config, strategy, defaults, mounted
        if _current is not None and given == (None, None, None, None) and not options:
            return _current
        _current, _pending = _prepare(mounted, config=config, strategy=strategy, defaults=defaults, **options), None
        _wrap()
        return _current


def install_later(options: RunOptions) -> None:
    """Install the environment's policy, but read the environment, and import the rest, with the first session."""
    global _pending
    with _lock:
        if _current is None:
            _pending = _pending or options
        _wrap()


def _in_force() -> Installation | None:
    """Return what is installed; the first session makes it if ``run`` left it for later."""
    global _current, _pending
    if _pending is None:
        return _current
    from ...errors import RetryConfigError

    with _lock:
        if _pending is not None:  # another thread may have been first
            try:
                # An unchanged program does not mount our adapter itself.
                _current = _prepare(None, "plain", _pending)
            except RetryConfigError as refusal:
                _pending.refuse(refusal)
            else:
                _pending = None
        return _current


def current() -> Installation | None:
    return _current


def _restart_counts() -> None:  # pragma: no cover - as below
    if _current is not None:
        _current.restart_counts()


PROCESSES.on_fork = _restart_counts


def uninstall() -> None:
    """Undo :func:`install` for sessions made from now on; do nothing if it is not in force.

    Sessions made in between keep their adapters.
    """
    global _current, _pending
    with _lock:
        _current = _pending = None
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


def _prepare(mounted: str | None, default: str = "none", run: RunOptions | None = None, **policy: Any) -> Installation:
    from ...adapter import RetryAdapter  # keeps the import of the package cheap
    from ...config.sources import mounted_of

    adapter = RetryAdapter(**policy)
    config = adapter.retry_config
    environ = os.environ if config.trust_env and config.enabled else {}
    return Installation(adapter, mounted_of(mounted, environ, default=default), run)


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
        is_left_alone = any(adapter is each for each in self.adapters.values())  # and was counted
        plain(self, prefix, adapter if is_left_alone else installation.adapter_to_mount(adapter))
        installation.after_mount(self)

    return mount
