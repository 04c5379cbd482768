"""``requests-smithy-retry try``: one real operation, reported as it happens."""

from __future__ import annotations

import enum
from typing import Any

import click
import requests
import requests.exceptions

from ..classifiers.actions import NoActionIndicated
from ..errors import StopReason
from ..mounting import mount
from ..observing.events import AfterAttempt, RetryScheduled
from ..observing.history import RetryHistory, retry_history, verdict_text, wait_text
from ..observing.listeners import RetryListener
from ..observing.log import QUIET_ENDINGS
from .config_command import config_of
from .explain_command import header_of


class Exit(enum.IntEnum):
    """The exit status, by the end of the operation."""

    SUCCEEDED = 0
    GAVE_UP = 1
    """A retry was indicated and could not be made."""
    NOT_RETRYABLE = 3
    """A retry would not help against the response or exception."""


class Teller(RetryListener):
    """Prints each attempt at its end, and each wait at its beginning."""

    def after_attempt(self, event: AfterAttempt, /) -> None:
        click.echo(f"attempt {event.number}: {event.record.ending} in {event.duration:.3f} s")
        for vote in event.record.votes:
            if not isinstance(vote.action, NoActionIndicated):
                click.echo(f"    {vote.classifier}: {verdict_text(vote)}")

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        """Print the wait: the one that begins, or the one for the service, which is over."""
        if event.line_why:
            click.echo(f"    {wait_text(event.operation.scope, event.line_wait, event.line_why)}")
            return
        paid = "" if event.record.quota_after is None else f"; tokens left: {event.record.quota_after:g}"
        click.echo(f"    retry in {event.delay:.3f} s ({event.delay_source}){paid}")


@click.command("try")
@click.option("--method", default="GET", show_default=True, help="The request's method.")
@click.option("--header", "headers", multiple=True, callback=header_of, help="A header of the request. Repeatable.")
@click.option("--data", help="The request's body.")
@click.option("--plot", is_flag=True, help="At the end, draw the attempts and the waits on a time axis.")
@click.argument("url")
@click.argument("options", nargs=-1, metavar="[OPTION=VALUE]...")
@click.pass_context
def try_url(
    context: click.Context,
    method: str,
    headers: tuple[tuple[str, str], ...],
    data: str | None,
    plot: bool,
    url: str,
    options: tuple[str, ...],
) -> None:
    """Make one real request with the resolved policy and report what happens.

    Each OPTION=VALUE stands for an option given in code, for instance max_attempts=5. Redirects are not followed. The
    exit status is 0 on success, 1 after giving up, 3 if a retry would not help, 2 for bad usage.

    The client is alone. In a service under load, waiting requests also hear from the others that the server is back.
    """
    config = config_of(options).replace(listeners=(Teller(),))
    with requests.Session() as session:
        mount(session, config=config)
        try:
            outcome: Any = session.request(method, url, headers=dict(headers), data=data, allow_redirects=False)
        except (requests.exceptions.RequestException, ValueError) as error:  # http.client: a method with a blank
            outcome = error
    history = retry_history(outcome)
    if history is not None:
        click.echo(f"\n{history.plot()}" if plot else history.sentence)
    elif isinstance(outcome, requests.Response):
        click.echo(f"ended with {outcome.status_code}; retries are switched off")
    elif config.enabled:
        click.echo(f"nothing was sent: {type(outcome).__name__}: {outcome}")
    else:
        click.echo(f"ended with {type(outcome).__name__}; retries are switched off")
    context.exit(exit_of(history, outcome))


def exit_of(history: RetryHistory | None, outcome: Any) -> Exit:
    """Return the exit status for an operation; with retries off, the outcome itself decides."""
    if history is None:
        return Exit.SUCCEEDED if getattr(outcome, "ok", False) else Exit.NOT_RETRYABLE
    if history.stop_reason is StopReason.SUCCESS:
        return Exit.SUCCEEDED
    return Exit.NOT_RETRYABLE if history.stop_reason in QUIET_ENDINGS else Exit.GAVE_UP
