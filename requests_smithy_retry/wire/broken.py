"""A response whose body broke off, for a session that takes its cookies first (contract 11.2)."""

from __future__ import annotations

from typing import Any, NoReturn

from requests import Response


class BrokenBody:
    """The raw stream of a response whose body broke off: it is as it was, and reading it raises the error.

    :param raw: the urllib3 response.
    :param error: that its body ended with.
    """

    def __init__(self, raw: Any, error: Exception) -> None:
        self._broken_raw = raw
        self._broken_error = error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_broken"):  # of a copy, which has nothing yet
            raise AttributeError(name)
        return getattr(self._broken_raw, name)

    def stream(self, *_: Any, **__: Any) -> NoReturn:
        """Raise the error; afterwards one like it, since the traceback of what is raised leads back to this stream."""
        error = self._broken_error
        self._broken_error = again = type(error).__new__(type(error))
        vars(again).update(vars(error))
        again.args = (str(error),)
        try:
            raise error
        finally:
            del error

    read = stream


def sets_cookies(response: Response) -> bool:
    """Return True if a session is to keep cookies of a response."""
    return "set-cookie" in response.headers


def with_broken_body(response: Response, error: Exception) -> Response:
    """Return a response of which reading the body raises an error.

    ``requests`` keeps the cookies of each head before it reads the body, and so it gets both.
    """
    raw: Any = BrokenBody(response.raw, error.with_traceback(None))
    response.raw, response._content, response._content_consumed = raw, False, False
    return response
