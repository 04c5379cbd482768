"""The subjects of the comparison: each is one callable that makes one whole `session.get(url)`.

Every subject has a session of its own with a warm connection pool. The wrappers (tenacity, stamina,
backoff, retryhttp) wrap `session.get` itself, their cheapest form: real code adds `raise_for_status()`
inside, since they see exceptions only, and that is not counted. A subject that cannot be made says why
instead of stopping the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import RequestException
from urllib3.util.retry import Retry

if TYPE_CHECKING:
    from collections.abc import Callable


class Subject(NamedTuple):
    """One row of the report; `get` is None where `reason` says why."""

    name: str
    what: str
    get: Callable[[str], requests.Response] | None
    reason: str | None
    close: Callable[[], None]


class EmptySubclass(HTTPAdapter):
    """The floor for whatever overrides `send`."""

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Only hand on."""
        return super().send(*args, **kwargs)


def _urllib3(**pool: Any) -> HTTPAdapter:
    return HTTPAdapter(max_retries=Retry(3, status_forcelist=[503], backoff_factor=0.1), **pool)


def _ours(**options: Any) -> Callable[..., HTTPAdapter]:
    def make(**pool: Any) -> HTTPAdapter:
        package = importlib.import_module("requests_smithy_retry")
        if not hasattr(package, "RetryAdapter"):
            raise LookupError(f"there is no RetryAdapter yet in {package.__file__}")
        return package.RetryAdapter(**pool, **options)

    return make


def _unheard(**pool: Any) -> HTTPAdapter:
    package = importlib.import_module("requests_smithy_retry")

    class Idle(package.RetryListener):
        """Overrides nothing."""

    return package.RetryAdapter(**pool, listeners=[Idle()])


def _listened(**pool: Any) -> HTTPAdapter:
    package = importlib.import_module("requests_smithy_retry")

    class Idle(package.RetryListener):
        """Hears of every event and does nothing; a method that is not overridden costs nothing at all."""

        def before_attempt(self, event: Any) -> None: ...

        def after_attempt(self, event: Any) -> None: ...

        def retry_scheduled(self, event: Any) -> None: ...

        def throttled(self, event: Any) -> None: ...

        def gave_up(self, event: Any) -> None: ...

        def succeeded(self, event: Any) -> None: ...

    return package.RetryAdapter(**pool, listeners=[Idle()])


def _tenacity(session: requests.Session) -> Any:
    from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

    return retry(
        stop=stop_after_attempt(3),
        wait=wait_random_exponential(multiplier=0.05, max=20),
        retry=retry_if_exception_type(RequestException),
        reraise=True,
    )(session.get)


def _stamina(session: requests.Session) -> Any:
    import stamina

    return stamina.retry(on=RequestException, attempts=3)(session.get)


def _backoff(session: requests.Session) -> Any:
    import backoff

    return backoff.on_exception(backoff.expo, RequestException, max_tries=3)(session.get)


def _retryhttp(session: requests.Session) -> Any:
    import retryhttp

    return retryhttp.retry(max_attempt_number=3)(session.get)


def _botocore(session: requests.Session) -> Any:
    from botocore_peer import standard_handler

    return standard_handler(session)


ADAPTERS: dict[str, tuple[str, Callable[..., HTTPAdapter]]] = {
    "plain": ("HTTPAdapter()", HTTPAdapter),
    "control": ("HTTPAdapter() once more: the noise", HTTPAdapter),
    "subclass": ("a subclass whose send only calls super().send", EmptySubclass),
    "urllib3": ("HTTPAdapter(max_retries=Retry(3, ...))", _urllib3),
    "ours": ("RetryAdapter(), standard mode", _ours()),
    "ours-idle-listener": ("RetryAdapter(listeners=[...]), one that overrides nothing", _unheard),
    "ours-listener": ("RetryAdapter(listeners=[...]), one that hears all and does nothing", _listened),
    "ours-adaptive": ('RetryAdapter(mode="adaptive")', _ours(mode="adaptive")),
    "ours-timeout": ("RetryAdapter(timeout=5)", _ours(timeout=5)),
    "ours-deadline": ("RetryAdapter(operation_timeout=30)", _ours(operation_timeout=30)),
    "ours-max-retries": (
        "RetryAdapter(max_retries=Retry(3, ...))",
        _ours(max_retries=Retry(3, status_forcelist=[503], backoff_factor=0.1)),
    ),
}
WRAPPERS: dict[str, tuple[str, Callable[[requests.Session], Any]]] = {
    "backoff": ("@backoff.on_exception(expo, max_tries=3)", _backoff),
    "stamina": ("@stamina.retry(attempts=3)", _stamina),
    "tenacity": ("@tenacity.retry(stop, wait_random_exponential)", _tenacity),
    "retryhttp": ("@retryhttp.retry(max_attempt_number=3)", _retryhttp),
    "botocore": ("standard retry handler fed with each success", _botocore),
}
NAMES = (*ADAPTERS, *WRAPPERS)
ALWAYS = ("plain", "control")


def build(name: str, connections: int) -> Subject:
    """Make one subject whose pool holds ``connections`` connections."""
    pool = {"pool_connections": 1, "pool_maxsize": connections}
    session = requests.Session()
    what = (ADAPTERS.get(name) or WRAPPERS[name])[0]
    try:
        if name in ADAPTERS:
            session.mount("http://", ADAPTERS[name][1](**pool))
            get = session.get
        else:
            session.mount("http://", HTTPAdapter(**pool))
            get = WRAPPERS[name][1](session)
    except Exception as error:  # whatever one of them lacks, the others are measured
        return Subject(name, what, None, f"{type(error).__name__}: {error}", session.close)
    return Subject(name, what, get, None, session.close)
