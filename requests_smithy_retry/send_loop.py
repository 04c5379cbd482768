"""The send loop (contract 2): the one place that sends and sleeps.

It decides nothing: an :class:`~requests_smithy_retry.operation.Operation` does. A first attempt that goes well needs
none where nothing is configured that would, which is what most of the conditions here are about.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from .bodies import SIMPLE_BODIES
from .classifier import RetryClassifier
from .clock import Clock
from .config import RetryConfig
from .interfaces import RetryStrategy
from .log import log_first_try, may_log
from .observed import ObservedOperation
from .operation import Operation
from .operation_options import OperationOptions, current_options
from .permits import wait_for_permit
from .wire import attempt, send_plainly, send_within, verify_whole


class SendLoop(HTTPAdapter):
    """How a :class:`RetryAdapter` sends. What it goes by is set there."""

    retry_config: RetryConfig
    clock: Clock
    strategy: RetryStrategy
    foreign_fold: tuple[RetryClassifier, ...] | None
    sees_successes: bool
    ask_permit: Any | None
    listeners: Any
    _in_full: Collection[Any] | bool
    _needs_operation: Collection[Any] | bool
    _owed: Collection[Any]
    _book: Callable[[PreparedRequest, float, Any], None]

    def scope_of(self, request: PreparedRequest) -> str:
        """The scope of a request."""
        raise NotImplementedError  # pragma: no cover - RetryAdapter has it

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        """Send a request, as often as the strategy allows; the arguments are those of ``HTTPAdapter.send``.

        :returns: the last attempt's own response.
        :raises requests.exceptions.RequestException: the last attempt's own exception; with ``raise_on_status``,
            ``requests.exceptions.RetryError`` for a bad status that retries did not mend.
        """
        operation: Operation | None = None
        watched: ObservedOperation | None = None
        error: Exception | None
        preload = not stream
        if self._in_full or request.body.__class__ not in SIMPLE_BODIES or current_options.get() is not None:
            options = current_options.get()
            if options is None and not self._needs_operation and request.body.__class__ in SIMPLE_BODIES:
                watched = ObservedOperation(self, request)
                request = watched.begin_first()
            elif attempt.plain or not self._is_enabled(options):
                plain, ours = super().send, functools.partial(SendLoop.send, self)
                how, send = (send_within, ours) if self._is_enabled(options) else (send_plainly, plain)
                return how(send, request, stream=stream, timeout=timeout, verify=verify, cert=cert, proxies=proxies)
            else:
                operation = Operation(self, request, stream, options)
                preload = operation.preload
                timeout = self.retry_config.timeout if timeout is None else timeout
                self._sleep(operation.wait)
                if not wait_for_permit(operation):
                    raise operation.never_sent()
                request = operation.begin_attempt()
        while True:
            response = None
            started = self.clock.now()
            attempt.connecting = False
            try:
                allowed = operation.limits.begin(timeout) if operation else timeout
                response = super().send(
                    request, stream=stream, timeout=allowed, verify=verify, cert=cert, proxies=proxies
                )
                if preload and response.status_code < 400:
                    response.content  # noqa: B018 - reads the body, so that a cut one is this attempt's failure
                    if getattr(response.raw, "_decoder", None):
                        verify_whole(response)
            except Exception as caught:
                error = caught
            except BaseException as stopped:
                attempt.connecting = False
                if operation is not None:
                    operation.limits.end()
                observed = watched if operation is None else operation.observed
                if observed is not None:
                    observed.interrupted(stopped, started)
                raise
            else:
                if not operation and response.status_code < 400:
                    if watched:
                        request = watched.succeeded_at_once(response, started)
                    if self._owed:
                        try:
                            self._book(request, started, timeout)
                        except BaseException:
                            response.close()  # a bug in the caller's function for the scope
                            raise
                    if may_log(10, True):
                        log_first_try(request.method, request.url, response.status_code, self.clock.now() - started)
                    response._retry_started = started  # type: ignore[attr-defined]
                    return response
                error = None
            if operation is None:
                operation = self._begin_late(request, response, stream, watched)
            again = operation.settle(response, error, started)
            self._wait(operation.wait, response)
            if not again or not wait_for_permit(operation):
                break
            request = operation.begin_attempt()
        error = operation.finish(response)
        context = None if error is None else error.__context__
        try:
            if error is not None:
                raise error
            assert response is not None
            return response
        finally:
            if error is not None:
                # Raised while the caller handles some other exception, it would lose its own cause to that one.
                error.__context__ = context
            # The tracebacks of attempts refer to this frame: what it refers to would live as long as they do.
            del error, context, operation, response

    def _is_enabled(self, options: OperationOptions | None) -> bool:
        if options is not None and options.enabled is not None:
            return options.enabled and self.retry_config.enabled
        return self.retry_config.enabled

    def _begin_late(
        self, request: PreparedRequest, response: Response | None, stream: bool, watched: ObservedOperation | None
    ) -> Operation:
        """The operation whose first attempt went ahead without one, because its body and its token were free."""
        try:
            return Operation(self, request if watched is None else watched.request, stream, None, watched)
        except BaseException:
            if response is not None:
                response.close()
            raise

    def _wait(self, seconds: float, response: Response | None) -> None:
        """Sleep; interrupted, the response that would have been handed on goes."""
        try:
            self._sleep(seconds)
        except BaseException:
            if response is not None:
                response.close()
            raise

    def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.clock.sleep(seconds)
