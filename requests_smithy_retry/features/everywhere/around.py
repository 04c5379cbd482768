"""An adapter around somebody else's (contract 10.5): ours retries, and theirs sends each attempt.

Their object stays as it is: its class, its ``send``, its pools, its TLS context, its attributes. Only its
``max_retries`` is replaced, by an object with the same settings that retries nothing beneath ours: no attempt is
multiplied, and a session that mounts their adapter without ours keeps its retries.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Callable
from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests.utils import prepend_scheme_if_needed, select_proxy

from ...adapter import STATE_KEY, RetryAdapter
from ...config.retry_config import RetryConfig
from ...core.strategy import RetryStrategy
from ...errors import RetryConfigError, RetryConfigWarning
from ...observing.history import ATTRIBUTE
from ...wire.pools import use_our_connections
from ..urllib3_retry import QuietRetry, given_retry, settings_of, translate, with_translated
from .counts import AdapterKind
from .decisions import Decision, decide, retries_nothing

COPIED = ("theirs", "_name", "_mounted", "_is_dry", "_policy", "_policy_strategy")
"""The attributes of a :class:`RetryAdapterAround` that its copies have, too."""


def _delegated(name: str) -> Any:
    def method(self: Delegating, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.theirs, name)(*args, **kwargs)

    return method


class Delegating(HTTPAdapter):
    """An adapter whose methods call those of another adapter."""

    theirs: Any

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        """Have their adapter send one attempt."""
        response: Response = self.theirs.send(
            request, stream=stream, timeout=timeout, verify=verify, cert=cert, proxies=proxies
        )
        if getattr(response, "connection", None) is self.theirs:
            response.connection = self  # for follow-up requests, as in digest authentication
        return response

    close: Any = _delegated("close")
    init_poolmanager: Any = _delegated("init_poolmanager")
    proxy_manager_for: Any = _delegated("proxy_manager_for")
    get_connection_with_tls_context: Any = _delegated("get_connection_with_tls_context")
    build_connection_pool_key_attributes: Any = _delegated("build_connection_pool_key_attributes")
    get_connection: Any = _delegated("get_connection")
    cert_verify: Any = _delegated("cert_verify")
    build_response: Any = _delegated("build_response")
    request_url: Any = _delegated("request_url")
    add_headers: Any = _delegated("add_headers")
    proxy_headers: Any = _delegated("proxy_headers")


class RetryAdapterAround(RetryAdapter, Delegating):
    """A :class:`RetryAdapter` around an adapter that somebody mounted, or that a session made for itself.

    Assigning or changing their ``max_retries`` later has the same effect as before mounting. Attributes that our
    adapter lacks are read from theirs, and set on it.

    :param theirs: their adapter.
    :param name: its name in sentences.
    :param mounted: which adapters get retries, and which are left to the program.
    :param state: the state of the adapter whose policy it has.
    :param is_dry: nothing is changed; it only reports what would change.
    :param on_decision: called with each decision, and the policy in force.
    """

    counted_as: AdapterKind | None = None
    on_decision: Callable[[RetryAdapterAround, Decision, RetryConfig], None] | None = None
    after_send: Callable[[bool], None] | None = None
    """Called after each send with True if it was a first-try success."""
    _name: str
    _mounted: str
    _is_dry: bool
    _policy: RetryConfig
    _policy_strategy: RetryStrategy
    _lock: threading.RLock
    _seen_manager: Any
    _seen_settings: Any
    """Their ``max_retries``, and the settings of the program's own, when they were adopted."""
    _is_made = False
    """Once this is true, new attributes are set on theirs."""

    def __init__(
        self,
        theirs: HTTPAdapter,
        name: str,
        mounted: str,
        state: dict[str, Any],
        *,
        is_dry: bool = False,
        on_decision: Callable[[RetryAdapterAround, Decision, RetryConfig], None] | None = None,
    ) -> None:
        own = {"theirs": theirs, "_name": name, "_mounted": mounted, "_is_dry": is_dry, "on_decision": on_decision}
        self._begin({**own, "_policy": state["retry_config"], "_policy_strategy": state["strategy"]}, state)
        self.adopt_changes()

    def _begin(self, own: dict[str, Any], state: dict[str, Any]) -> None:
        vars(self).update(own, _lock=threading.RLock(), _seen_settings=None, _seen_manager=None)
        self._take_on(state)
        self._is_made = True

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        """Send a request by the policy in force, which the program may have changed meanwhile."""
        self.adopt_changes()
        if proxies and self.retry_config.enabled:
            self._prepare_proxy(request, proxies)
        if self.after_send is None:
            return super().send(request, stream, timeout, verify, cert, proxies)
        at_once = False
        try:
            response = super().send(request, stream, timeout, verify, cert, proxies)
            at_once = ATTRIBUTE not in vars(response)
            return response
        finally:
            self.after_send(at_once)

    def _prepare_proxy(self, request: PreparedRequest, proxies: Any) -> None:
        """Prepare the pools of a proxy, before their ``send`` asks for one."""
        with contextlib.suppress(Exception):  # which their send raises, too
            proxy = select_proxy(str(request.url), proxies)
            if proxy:
                self.proxy_manager_for(prepend_scheme_if_needed(proxy, "http"))

    def adopt_changes(self) -> None:
        """Adopt what the program has changed in their ``max_retries``, and their pools."""
        manager = getattr(self.theirs, "poolmanager", None)
        if manager is not self._seen_manager:
            vars(self)["_seen_manager"] = manager
            self._use_our_pools()
        if self._seen_settings != self._settings_now():
            with self._lock:
                self._apply(given_retry(self.retries))
                self._seen_settings = self._settings_now()

    def _settings_now(self) -> tuple[Any, dict[str, Any]]:
        retries = self.retries
        return retries, settings_of(given_retry(retries))

    @property
    def is_left_alone(self) -> bool:
        """The program's own retries are in force, or it has none."""
        return not (self.retry_config.enabled or self._is_dry)

    @property
    def retries(self) -> Any:
        """Their ``max_retries``; 0 for an adapter without the attribute."""
        return getattr(self.theirs, "max_retries", 0)

    def _apply(self, retries: Any) -> None:
        decision, policy = decide(self.theirs, self._name, retries, self._mounted), self._policy
        if decision.is_translated:
            try:
                policy = with_translated(policy, translate(retries, warns=False))
            except (RetryConfigError, RetryConfigWarning) as refusal:
                decision = Decision(f"{self._name}, whose max_retries cannot be translated: {refusal}", "replace")
        is_off = self._is_dry or decision.needed is not None
        if is_off:
            if self.retries is not retries:
                self.theirs.max_retries = retries
        elif not retries_nothing(retries):
            self.theirs.max_retries = QuietRetry(retries)
        if decision.is_translated and not is_off:
            self._is_shared = True
            self._adopt(policy)
        else:
            self.retry_config: RetryConfig = policy.replace(enabled=False) if is_off else policy
            self._use(self._policy_strategy)
        if self.on_decision is not None:
            self.on_decision(self, decision, policy)

    def _use_our_pools(self, manager: Any = None) -> None:
        if self.retry_config.enabled:
            super()._use_our_pools(manager)

    # Above our own shortcuts, which are not for their adapter.
    get_connection_with_tls_context: Any = Delegating.get_connection_with_tls_context
    request_url: Any = Delegating.request_url

    def _use_our_connections(self) -> None:
        use_our_connections(self.theirs, self.addresses)

    @property
    def max_retries(self) -> Any:
        """Theirs."""
        return self.theirs.max_retries

    @max_retries.setter
    def max_retries(self, value: Any) -> None:
        self.theirs.max_retries = value
        self.adopt_changes()

    def __getattr__(self, name: str) -> Any:
        if name == "theirs":  # not yet: it is being unpickled
            raise AttributeError(name)
        return getattr(self.theirs, name)

    def __setattr__(self, name: str, value: Any) -> None:
        is_ours = name in vars(self) or hasattr(type(self), name) or not self._is_made
        (object.__setattr__ if is_ours else setattr)(self if is_ours else self.theirs, name, value)

    # Copies and pickles have a copy of theirs, made in its own way.

    def __getstate__(self) -> dict[str, Any]:
        return {"own": {name: getattr(self, name) for name in COPIED}, STATE_KEY: self._state_to_copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin(state["own"], state[STATE_KEY])
        self._seen_settings = self._settings_now()

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        own = {**self.__getstate__()["own"], "theirs": copy.copy(self.theirs)}
        other.__setstate__({"own": own, STATE_KEY: self._state_with_fresh_strategy()})
        return other
